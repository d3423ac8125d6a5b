"""Google's APIs: clients, credentials, endpoints. Imports no other package of tpuenv/."""
