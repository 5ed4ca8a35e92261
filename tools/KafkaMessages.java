import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Enumeration;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageSizeAccumulator;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

/**
 * Prints the messages that a release of Kafka defines, read from its generated classes by reflection:
 * a line of JSON for each. tools/kafka_messages.py runs it on the jars of each release.
 *
 * Facts only: names, api keys, versions, types, nullability, tags and defaults; no documentation.
 */
public final class KafkaMessages {
    private static final String PACKAGES = ".*/(common/message|common/metadata|generated)/[^/$]+\\.class";

    /** Structures of the message at hand, by the first field of each of their schemas. */
    private static final Map<Object, String> structures = new IdentityHashMap<>();

    private static List<Class<?>> generated() throws Exception {
        TreeSet<String> names = new TreeSet<>();
        for (String path : System.getProperty("java.class.path").split(java.io.File.pathSeparator)) {
            if (!Path.of(path).getFileName().toString().startsWith("kafka")) continue;
            try (JarFile jar = new JarFile(path)) {
                for (Enumeration<JarEntry> all = jar.entries(); all.hasMoreElements(); ) {
                    String name = all.nextElement().getName();
                    if (name.matches(PACKAGES)) names.add(name.replace(".class", "").replace('/', '.'));
                }
            }
        }
        List<Class<?>> found = new ArrayList<>();
        for (String name : names) {
            Class<?> type = Class.forName(name);
            if (ApiMessage.class.isAssignableFrom(type) && !type.isInterface()) found.add(type);
        }
        return found;
    }

    private static short number(Class<?> type, String name) throws Exception {
        return type.getField(name).getShort(null);
    }

    /** The schema of a version; null: the structure is not in it. */
    private static Schema schema(Class<?> type, int version) throws Exception {
        try {
            return (Schema) type.getField("SCHEMA_" + version).get(null);
        } catch (NoSuchFieldException absent) {
            return null;
        }
    }

    private static String plain(String name) {
        return name.replace("_", "").toLowerCase(Locale.ROOT);
    }

    /** What a schema shares with the one that a release makes of it for a structure that may be null. */
    private static Object first(Schema schema) {
        return schema.fields()[0].def;
    }

    /** Whether Kafka's own code counts the bytes of an instance whose field is null. */
    private static boolean mayBeNull(Class<?> type, Field field, int version) throws Exception {
        Message instance = (Message) type.getDeclaredConstructor().newInstance();
        field.set(instance, null);
        try {
            instance.addSize(new MessageSizeAccumulator(), new ObjectSerializationCache(), (short) version);
            return true;
        } catch (NullPointerException refused) {
            return false;
        }
    }

    /** A field's type in our notation, with what marks it nullable. */
    private static String typed(Type type) {
        if (type.isArray()) {
            String inner = typed(type.arrayElementType().orElseThrow());
            return "[]" + inner + (type.isNullable() ? "?" : "");
        }
        if (type instanceof Schema) return structures.get(first((Schema) type));
        String name = type.toString().toLowerCase(Locale.ROOT).replace("compact_", "");
        if (name.equals("boolean")) name = "bool";
        return name.startsWith("nullable_") ? name.substring(9) + "?" : name;
    }

    /** The default of a field, from a new instance; empty if it is what the type has by nature. */
    private static String defaulted(Object value) {
        if (value == null) return "=null";
        if (value instanceof Collection || value instanceof byte[]) return "";
        if (value instanceof Boolean) return (Boolean) value ? "=true" : "";
        if (value instanceof Number) return ((Number) value).doubleValue() == 0 ? "" : "=" + value;
        if (value instanceof String) return ((String) value).isEmpty() ? "" : "=" + value;
        return value.equals(Uuid.ZERO_UUID) || !(value instanceof Uuid) ? "" : "=" + value;
    }

    @SuppressWarnings("unchecked")
    private static Map<Integer, org.apache.kafka.common.protocol.types.Field> tagged(TaggedFields type)
            throws Exception {
        Field fields = TaggedFields.class.getDeclaredField("fields");
        fields.setAccessible(true);
        return (Map<Integer, org.apache.kafka.common.protocol.types.Field>) fields.get(type);
    }

    /** Types of a version's fields, and their tags, by {@link #plain} names. */
    private static Map<String, String> types(Schema schema) throws Exception {
        Map<String, String> known = new TreeMap<>();
        for (BoundField bound : schema.fields()) {
            if (!(bound.def.type instanceof TaggedFields)) {
                known.put(plain(bound.def.name), typed(bound.def.type));
                continue;
            }
            for (var tagged : tagged((TaggedFields) bound.def.type).entrySet()) {
                String kind = typed(tagged.getValue().type);
                known.put(plain(tagged.getValue().name), kind + "#" + tagged.getKey());
            }
        }
        return known;
    }

    /** Fields of a version in the order of their declaration: {@code name:type?#tag=default}. */
    private static String fields(Class<?> type, int version) throws Exception {
        Map<String, String> known = types(schema(type, version));
        Object instance = type.getDeclaredConstructor().newInstance();
        List<String> words = new ArrayList<>();
        for (Field field : type.getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers())) continue;
            String kind = known.remove(plain(field.getName()));
            if (kind == null) continue;
            if (kind.contains("null")) throw new IllegalStateException(type + " has " + field);
            field.setAccessible(true);
            boolean unsaid = Message.class.isAssignableFrom(field.getType()) || kind.startsWith("records");
            if (unsaid && !kind.contains("?") && mayBeNull(type, field, version))
                kind = kind.contains("#") ? kind.replace("#", "?#") : kind + "?";
            words.add(field.getName() + ":" + kind + defaulted(field.get(instance)));
        }
        if (!known.isEmpty()) throw new IllegalStateException(type + " lacks " + known);
        return String.join(" ", words);
    }

    private static boolean isFlexible(Schema schema) {
        BoundField[] all = schema.fields();
        return all.length > 0 && all[all.length - 1].def.type instanceof TaggedFields;
    }

    /** A version's fields, those of its structures after their names. */
    private static String version(Class<?> message, int version) throws Exception {
        List<String> pairs = new ArrayList<>();
        Schema whole = schema(message, version);
        pairs.add("\"flexible\":" + isFlexible(whole));
        pairs.add("\"\":\"" + fields(message, version) + "\"");
        for (Class<?> inner : message.getDeclaredClasses()) {
            if (schema(inner, version) == null) continue;
            pairs.add("\"" + inner.getSimpleName() + "\":\"" + fields(inner, version) + "\"");
        }
        return "\"" + version + "\":{" + String.join(",", pairs) + "}";
    }

    /** Whether the newest version of a request is not negotiated yet; releases before 3.5 have no such. */
    private static boolean isUnstable(int key) throws Exception {
        try {
            Object unstable = ApiMessageType.class.getMethod("latestVersionUnstable")
                .invoke(ApiMessageType.fromApiKey((short) key));
            return (Boolean) unstable;
        } catch (NoSuchMethodException absent) {
            return false;
        }
    }

    private static void print(Class<?> message) throws Exception {
        structures.clear();
        int low = number(message, "LOWEST_SUPPORTED_VERSION");
        int high = number(message, "HIGHEST_SUPPORTED_VERSION");
        for (Class<?> inner : message.getDeclaredClasses())
            for (int version = low; version <= high; version++)
                if (schema(inner, version) != null)
                    structures.put(first(schema(inner, version)), inner.getSimpleName());
        List<String> versions = new ArrayList<>();
        for (int version = low; version <= high; version++) versions.add(version(message, version));
        int key = ((ApiMessage) message.getDeclaredConstructor().newInstance()).apiKey();
        boolean unstable = message.getSimpleName().endsWith("RequestData") && key >= 0 && isUnstable(key);
        System.out.println("{\"name\":\"" + message.getSimpleName() + "\",\"package\":\""
            + message.getPackageName() + "\",\"key\":" + key + ",\"unstable\":" + unstable
            + ",\"versions\":{" + String.join(",", versions) + "}}");
    }

    public static void main(String[] words) throws Exception {
        for (Class<?> message : generated()) print(message);
    }
}
