"""Decisions of the controller about rights: ACLs and delegation tokens."""
