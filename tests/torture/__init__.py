"""Commands are killed at random moments and started again, and nothing may be lost: `make torture`."""
