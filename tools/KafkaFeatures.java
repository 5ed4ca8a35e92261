import java.lang.reflect.Method;

/**
 * Prints the feature levels with which a release formats a new cluster: a line of JSON for each.
 * tools/kafka_facts.py runs it on the jars of each release that has KRaft.
 */
public final class KafkaFeatures {
    private static final String COMMON = "org.apache.kafka.server.common.";

    private static Class<?> first(String... names) {
        for (String name : names) {
            try {
                return Class.forName(COMMON + name);
            } catch (ClassNotFoundException other) {
                continue;
            }
        }
        return null;
    }

    private static Method method(Class<?> type, String name, Class<?>... arguments) {
        try {
            return type.getMethod(name, arguments);
        } catch (NoSuchMethodException none) {
            return null;
        }
    }

    /** The newest metadata.version for production; of releases that hide none, the newest. */
    private static Object metadataVersion(Class<?> type) throws Exception {
        try {
            return type.getField("LATEST_PRODUCTION").get(null);
        } catch (NoSuchFieldException none) {
            Method latest = method(type, "latestProduction");
            return (latest == null ? method(type, "latest") : latest).invoke(null);
        }
    }

    private static void print(String name, Object level) {
        System.out.println("{\"name\":\"" + name + "\",\"level\":" + level + "}");
    }

    public static void main(String[] words) throws Exception {
        Class<?> versions = first("MetadataVersion");
        Object version = metadataVersion(versions);
        print("metadata.version", versions.getMethod("featureLevel").invoke(version));
        Class<?> features = first("Feature", "Features");
        if (features == null || !features.isEnum()) return;
        for (Object feature : features.getEnumConstants()) {
            String name = (String) features.getMethod("featureName").invoke(feature);
            Method level = method(features, "defaultLevel", versions);
            if (level == null) level = method(features, "defaultValue", versions);
            if (level != null) print(name, level.invoke(feature, version));
        }
    }
}
