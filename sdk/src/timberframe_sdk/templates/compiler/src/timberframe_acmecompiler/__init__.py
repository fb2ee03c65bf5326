"""The device ACMECOMPILER for Timberframe."""
