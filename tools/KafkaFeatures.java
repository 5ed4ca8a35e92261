import java.lang.reflect.Method;
import java.util.Map;
import java.util.TreeMap;

/**
 * Prints the feature levels with which a release formats a new cluster, and then the range of levels
 * that its servers support: a line of JSON for each.
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

    /** Ranges that servers of the release register, by feature. */
    private static Map<?, ?> supported() throws Exception {
        Class<?> type = Class.forName("org.apache.kafka.controller.QuorumFeatures");
        for (String name : new String[] {"defaultSupportedFeatureMap", "defaultFeatureMap"}) {
            Method known = method(type, name, boolean.class);
            if (known != null) return (Map<?, ?>) known.invoke(null, false);
            known = method(type, name);
            if (known != null) return (Map<?, ?>) known.invoke(null);
        }
        throw new IllegalStateException("no map of supported features");
    }

    private static void printSupported() throws Exception {
        for (Map.Entry<?, ?> each : new TreeMap<>(supported()).entrySet()) {
            Object range = each.getValue();
            System.out.println("{\"name\":\"" + each.getKey() + "\",\"lowest\":"
                + range.getClass().getMethod("min").invoke(range) + ",\"highest\":"
                + range.getClass().getMethod("max").invoke(range) + "}");
        }
    }

    public static void main(String[] words) throws Exception {
        printSupported();
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
