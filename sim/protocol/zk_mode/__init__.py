"""Kafka on ZooKeeper (0.10 to 3.9): ``KafkaController``, and a broker's control plane."""
