import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Load before the scenario's zero, so that virtual machines have compiled what produce, fetch and replication run: some
 * hundred records a second to a topic of its own, read back in the same thread. Each broker leads one partition of it.
 */
final class WarmUp {
    private static final int SMALL = 100;
    private static final int LARGE = 20_000;
    /** One record of so many is large. */
    private static final int RARE = 25;
    private static final int REPLICAS = 3;

    private final String topic;
    private final Properties config = new Properties();
    private final List<Integer> brokers;
    private final Thread thread = new Thread(this::load);
    private volatile boolean ended;

    WarmUp(String servers, String topic, List<Integer> brokers) throws Exception {
        this.topic = topic;
        this.brokers = brokers;
        config.setProperty("bootstrap.servers", servers);
        config.setProperty("linger.ms", "0");
        config.setProperty("request.timeout.ms", "4000");
        config.setProperty("delivery.timeout.ms", "5000"); // What cannot be had does not hold up the end.
        try (Admin admin = Admin.create(config)) {
            NewTopic made = new NewTopic(topic, placement()).configs(Map.of("min.insync.replicas", "1"));
            admin.createTopics(List.of(made)).all().get();
        } catch (ExecutionException error) {
            if (!(error.getCause() instanceof TopicExistsException)) { // Another process of clients has made it.
                throw error;
            }
        }
        thread.start();
    }

    /** Ends the load. */
    void end() throws InterruptedException {
        ended = true;
        thread.join();
    }

    /** Deletes the topic, once every process has ended its load. */
    void remove() throws Exception {
        try (Admin admin = Admin.create(config)) {
            admin.deleteTopics(List.of(topic)).all().get();
        }
    }

    private Map<Integer, List<Integer>> placement() {
        Map<Integer, List<Integer>> found = new HashMap<>();
        for (int partition = 0; partition < brokers.size(); partition++) {
            int first = partition;
            found.put(partition, IntStream.range(0, Math.min(REPLICAS, brokers.size()))
                    .mapToObj(next -> brokers.get((first + next) % brokers.size()))
                    .toList());
        }
        return found;
    }

    private void load() {
        List<TopicPartition> partitions = IntStream.range(0, brokers.size())
                .mapToObj(partition -> new TopicPartition(topic, partition))
                .collect(Collectors.toList());
        try (KafkaProducer<byte[], byte[]> producer =
                        new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
                KafkaConsumer<byte[], byte[]> consumer =
                        new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            for (int number = 0; !ended; number++) {
                byte[] value = new byte[number % RARE == 0 ? LARGE : SMALL];
                producer.send(new ProducerRecord<>(topic, number % brokers.size(), null, value));
                consumer.poll(Duration.ofMillis(1));
            }
        }
    }
}
