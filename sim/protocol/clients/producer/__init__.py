"""``KafkaProducer``: accumulator, partitioner, sender, sequences, transactions."""
