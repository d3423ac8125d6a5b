"""Terraform's plugin protocol and the fake providers behind it. Imports rehearsal.cloud; knows no resource type.

plugin_server serves the providers over gRPC, protocol_messages has the messages, values encodes what is in them.
fake_provider answers each call, resource_type is what it asks of a type. bindings reads the schemas, schemas is their
model, planning and sdk_configuration plan as a real provider does, consistency checks it, failures makes changes fail
on purpose.
"""
