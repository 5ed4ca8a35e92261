"""State of idempotent producers and of transactions in a log (``ProducerStateManager``)."""
