"""Rights that each type of request needs (``KafkaApis``), and the answers without them."""
