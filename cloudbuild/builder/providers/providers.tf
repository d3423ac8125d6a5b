# The providers that the bindings in requirements.txt are made for. To change one, change it there and here, and write
# the lock anew: terraform providers lock -platform=linux_amd64
terraform {
  required_providers {
    google     = { source = "hashicorp/google", version = "6.50.0" }
    kubernetes = { source = "hashicorp/kubernetes", version = "2.38.0" }
    helm       = { source = "hashicorp/helm", version = "3.1.1" }
  }
}
