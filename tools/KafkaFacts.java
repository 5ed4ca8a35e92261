import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import org.apache.kafka.common.config.ConfigDef;

/**
 * Prints what a release of Kafka defines, read from its own classes: a line of JSON for each setting
 * of its ConfigDefs. tools/kafka_facts.py runs it on the jars of each release.
 *
 * Facts only: names, types, defaults, what the validator prints, importance; no documentation.
 */
public final class KafkaFacts {
    private static final String CLIENTS = "org.apache.kafka.clients.";
    private static final String CONNECT = "org.apache.kafka.connect.runtime.";
    private static final String MIRROR = "org.apache.kafka.connect.mirror.";
    private static final String DYNAMIC = "kafka.server.DynamicConfig$";
    private static final String SERVER = "org.apache.kafka.server.config.";

    /**
     * The places of a ConfigDef, newest first: a field, or a method without arguments (). Those of
     * Scala's objects (Name$) are read from the object.
     */
    private static final String[][] DEFINITIONS = {
        {"broker", SERVER + "AbstractKafkaConfig.CONFIG_DEF", "kafka.server.KafkaConfig.configDef()",
            "kafka.server.KafkaConfig$.configDef", "kafka.server.KafkaConfig$.kafka$server$KafkaConfig$$configDef"},
        {"broker quota", SERVER + "QuotaConfig.brokerQuotaConfigs()",
            SERVER + "QuotaConfigs.brokerQuotaConfigs()", DYNAMIC + "Broker$.brokerConfigDef",
            DYNAMIC + "Broker$.kafka$server$DynamicConfig$Broker$$brokerConfigDef"},
        {"client quota", SERVER + "QuotaConfig.userAndClientQuotaConfigs()",
            SERVER + "QuotaConfigs.userAndClientQuotaConfigs()",
            DYNAMIC + "QuotaConfigs.userAndClientQuotaConfigs()",
            DYNAMIC + "Client$.clientConfigs",
            DYNAMIC + "Client$.kafka$server$DynamicConfig$Client$$clientConfigs"},
        {"ip quota", SERVER + "QuotaConfig.ipConfigs()", SERVER + "QuotaConfigs.ipConfigs()",
            DYNAMIC + "Ip$.ipConfigs"},
        {"group", "org.apache.kafka.coordinator.group.GroupConfig.CONFIG_DEF",
            "org.apache.kafka.coordinator.group.GroupConfig.CONFIG"},
        {"client metrics", "org.apache.kafka.server.metrics.ClientMetricsConfigs.CONFIG"},
        {"topic", "org.apache.kafka.storage.internals.log.LogConfig.CONFIG",
            "kafka.log.LogConfig$.configDef", "kafka.log.LogConfig$.kafka$log$LogConfig$$configDef"},
        {"producer", CLIENTS + "producer.ProducerConfig.CONFIG"},
        {"consumer", CLIENTS + "consumer.ConsumerConfig.CONFIG"},
        {"admin", CLIENTS + "admin.AdminClientConfig.CONFIG"},
        {"streams", "org.apache.kafka.streams.StreamsConfig.CONFIG"},
        {"connect distributed", CONNECT + "distributed.DistributedConfig.config(Crypto)",
            CONNECT + "distributed.DistributedConfig.CONFIG"},
        {"connect standalone", CONNECT + "standalone.StandaloneConfig.CONFIG"},
        {"connect source", CONNECT + "SourceConnectorConfig.configDef()",
            CONNECT + "SourceConnectorConfig.CONFIG", CONNECT + "ConnectorConfig.configDef()"},
        {"connect sink", CONNECT + "SinkConnectorConfig.configDef()",
            CONNECT + "SinkConnectorConfig.CONFIG"},
        {"mirror maker", MIRROR + "MirrorMakerConfig.config()", MIRROR + "MirrorMakerConfig.CONFIG_DEF"},
        {"mirror source", MIRROR + "MirrorSourceConfig.CONNECTOR_CONFIG_DEF",
            MIRROR + "MirrorConnectorConfig.CONNECTOR_CONFIG_DEF"},
        {"mirror checkpoint", MIRROR + "MirrorCheckpointConfig.CONNECTOR_CONFIG_DEF",
            MIRROR + "MirrorConnectorConfig.CONNECTOR_CONFIG_DEF"},
        {"mirror heartbeat", MIRROR + "MirrorHeartbeatConfig.CONNECTOR_CONFIG_DEF",
            MIRROR + "MirrorConnectorConfig.CONNECTOR_CONFIG_DEF"},
        {"mirror client", MIRROR + "MirrorClientConfig.CONFIG_DEF"},
        {"mirror topic filter", MIRROR + "DefaultTopicFilter$TopicFilterConfig.DEF"},
        {"mirror group filter", MIRROR + "DefaultGroupFilter$GroupFilterConfig.DEF"},
        {"mirror property filter",
            MIRROR + "DefaultConfigPropertyFilter$ConfigPropertyFilterConfig.DEF"},
    };

    private static Object of(String place) throws Exception {
        int open = place.indexOf('(');
        String path = open < 0 ? place : place.substring(0, open);
        int dot = path.lastIndexOf('.');
        Class<?> type = Class.forName(path.substring(0, dot));
        String name = path.substring(dot + 1);
        if (open < 0) {
            Field field = type.getDeclaredField(name);
            field.setAccessible(true);
            if (Modifier.isStatic(field.getModifiers())) return field.get(null);
            return field.get(type.getField("MODULE$").get(null));
        }
        if (place.endsWith("(Crypto)")) {
            Class<?> crypto = Class.forName(CONNECT + "distributed.Crypto");
            Method method = type.getDeclaredMethod(name, crypto);
            method.setAccessible(true);
            return method.invoke(null, crypto.getField("SYSTEM").get(null));
        }
        Method method = type.getDeclaredMethod(name);
        method.setAccessible(true);
        return method.invoke(null);
    }

    /** The first of the places that the release has; null if it has none. */
    private static ConfigDef definition(String[] places) throws Exception {
        for (int at = 1; at < places.length; at++) {
            try {
                return (ConfigDef) of(places[at]);
            } catch (ClassNotFoundException | NoSuchFieldException | NoSuchMethodException other) {
                continue;
            }
        }
        return null;
    }

    private static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char each : text.toCharArray()) {
            if (each == '"' || each == '\\') out.append('\\').append(each);
            else if (each < ' ') out.append(String.format("\\u%04x", (int) each));
            else out.append(each);
        }
        return out.append('"').toString();
    }

    private static String pair(String name, String json) {
        return quoted(name) + ":" + json;
    }

    /** ConfigDef's own validators print bounds and words; of any other the class alone is kept. */
    private static String allowed(ConfigDef.Validator validator) {
        Class<?> type = validator.getClass();
        if (type.isAnonymousClass() || type.getName().contains("Lambda")) return "code";
        String text = String.valueOf(validator);
        if (text.equals(type.getName() + "@" + Integer.toHexString(validator.hashCode()))) text = "";
        if (type.getEnclosingClass() == ConfigDef.class && !text.isEmpty()) return text;
        return type.getName().substring(type.getPackageName().length() + 1).replace('$', '.');
    }

    /** As a file of properties would have it; classes by their names. */
    private static String shown(Object value) {
        if (value instanceof Class) return ((Class<?>) value).getName();
        if (!(value instanceof List)) return String.valueOf(value);
        List<String> words = new ArrayList<>();
        for (Object word : (List<?>) value)
            words.add(word instanceof Class ? ((Class<?>) word).getName() : String.valueOf(word));
        return String.join(",", words);
    }

    /** Releases before 2.0 hide none. */
    private static boolean isInternal(ConfigDef.ConfigKey key) throws Exception {
        try {
            return key.getClass().getField("internalConfig").getBoolean(key);
        } catch (NoSuchFieldException none) {
            return false;
        }
    }

    private static List<String> facts(ConfigDef.ConfigKey key) throws Exception {
        List<String> found = new ArrayList<>();
        found.add(pair("type", quoted(key.type.name().toLowerCase())));
        if (key.defaultValue == null) found.add(pair("default", "null"));
        else if (key.defaultValue != ConfigDef.NO_DEFAULT_VALUE)
            found.add(pair("default", quoted(shown(key.defaultValue))));
        if (key.validator != null) found.add(pair("valid", quoted(allowed(key.validator))));
        found.add(pair("importance", quoted(key.importance.name().toLowerCase())));
        if (isInternal(key)) found.add(pair("internal", "true"));
        return found;
    }

    /** Broker settings that replace a topic's; null before there was a table of them. */
    private static Object synonyms() throws Exception {
        try {
            return of(SERVER + "ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS");
        } catch (ClassNotFoundException none) {
            return null;
        }
    }

    /** Broker settings that replace one topic setting, and what each makes of a 1. */
    @SuppressWarnings("unchecked")
    private static String synonyms(Object all, String name) throws Exception {
        if (all == null) return "[]";
        List<String> found = new ArrayList<>();
        for (Object synonym : ((Map<String, List<Object>>) all).getOrDefault(name, List.of())) {
            String broker = (String) synonym.getClass().getMethod("name").invoke(synonym);
            Function<String, String> converter =
                (Function<String, String>) synonym.getClass().getMethod("converter").invoke(synonym);
            found.add("[" + quoted(broker) + "," + converter.apply("1") + "]");
        }
        return "[" + String.join(",", found) + "]";
    }

    private static void print(String scope, ConfigDef defined) throws Exception {
        Object all = synonyms();
        for (ConfigDef.ConfigKey key : new TreeMap<>(defined.configKeys()).values()) {
            List<String> line = new ArrayList<>();
            line.add(pair("of", quoted(scope)));
            line.add(pair("name", quoted(key.name)));
            line.addAll(facts(key));
            String brokers = scope.equals("topic") ? synonyms(all, key.name) : "[]";
            if (!brokers.equals("[]")) line.add(pair("broker", brokers));
            System.out.println("{" + String.join(",", line) + "}");
        }
    }

    public static void main(String[] words) throws Exception {
        for (String[] places : DEFINITIONS) {
            ConfigDef defined = definition(places);
            if (defined != null) print(places[0], defined);
        }
    }
}
