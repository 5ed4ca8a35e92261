"""Processes of Kafka Streams' tasks, Connect's tasks and MirrorMaker 2."""
