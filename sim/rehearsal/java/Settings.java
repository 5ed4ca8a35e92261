import java.io.IOException;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;

/** One client of a file of properties: the keys below its prefix. */
final class Settings {
    private final Properties file;
    private final String prefix;

    private Settings(Properties file, String prefix) {
        this.file = file;
        this.prefix = prefix;
    }

    static Properties read(Path path) throws IOException {
        Properties file = new Properties();
        try (Reader reader = Files.newBufferedReader(path)) {
            file.load(reader);
        }
        return file;
    }

    static Settings of(Properties file, int client) {
        return new Settings(file, "client." + client + ".");
    }

    String text(String key) {
        String value = file.getProperty(prefix + key);
        if (value == null) {
            throw new IllegalArgumentException(prefix + key + " is missing");
        }
        return value;
    }

    long number(String key) {
        return Long.parseLong(text(key));
    }

    boolean flag(String key) {
        return Boolean.parseBoolean(text(key));
    }

    /** Kafka's own settings of the client. */
    Properties kafka() {
        String start = prefix + "config.";
        Properties found = new Properties();
        for (String name : file.stringPropertyNames()) {
            if (name.startsWith(start)) {
                found.setProperty(name.substring(start.length()), file.getProperty(name));
            }
        }
        return found;
    }
}
