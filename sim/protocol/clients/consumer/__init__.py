"""``KafkaConsumer``, classic and KIP-848: membership, fetcher, positions, commits."""
