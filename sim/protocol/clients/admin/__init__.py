"""``KafkaAdminClient``: topics, operations, group offsets."""
