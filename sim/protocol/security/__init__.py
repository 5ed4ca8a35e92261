"""Authentication of clients: SASL at both ends, certificates, and listeners."""
