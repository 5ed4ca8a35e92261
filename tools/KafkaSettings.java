import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;

/**
 * Prints the settings that a release of Kafka defines, from its own ConfigDefs, a line each:
 * scope, name, type, default. What tools/kafka_settings.py runs on the jars of each release.
 */
public final class KafkaSettings {
    private static final String CLIENTS = "org.apache.kafka.clients.";

    private static ConfigDef of(String type, String field) throws Exception {
        Field found = Class.forName(type).getDeclaredField(field);
        found.setAccessible(true);
        return (ConfigDef) found.get(null);
    }

    private static ConfigDef broker() throws Exception {
        try {
            return of("org.apache.kafka.server.config.AbstractKafkaConfig", "CONFIG_DEF");
        } catch (NoSuchFieldException | ClassNotFoundException older) {
            Method made = Class.forName("kafka.server.KafkaConfig").getMethod("configDef");
            return (ConfigDef) made.invoke(null);
        }
    }

    private static ConfigDef topic() throws Exception {
        return of("org.apache.kafka.storage.internals.log.LogConfig", "CONFIG");
    }

    /** A default that depends on the machine is said to be its own. */
    private static String shown(ConfigDef.ConfigKey key) {
        if (key.defaultValue == null) return "null";
        if (key.defaultValue == ConfigDef.NO_DEFAULT_VALUE) return "";
        return ConfigDef.convertToString(key.defaultValue, key.type);
    }

    private static void print(String scope, ConfigDef defined) {
        for (ConfigDef.ConfigKey key : new TreeMap<>(defined.configKeys()).values()) {
            String[] cells = {scope, key.name, key.type.name().toLowerCase(), shown(key)};
            System.out.println(String.join("\t", cells).replace("\n", " "));
        }
    }

    public static void main(String[] words) throws Exception {
        print("broker", broker());
        print("topic", topic());
        print("producer", of(CLIENTS + "producer.ProducerConfig", "CONFIG"));
        print("consumer", of(CLIENTS + "consumer.ConsumerConfig", "CONFIG"));
    }
}
