"""``KafkaShareConsumer`` (KIP-932)."""
