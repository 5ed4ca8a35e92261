import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;

/**
 * Rows of the trace tables that clients can know, a line each: the table's name, then its columns in the
 * schema's order, all separated by tabs; the numbers of a list by commas.
 */
final class EventLog {
    private final BufferedWriter out;

    EventLog(Path file) throws IOException {
        out = Files.newBufferedWriter(file);
    }

    /** The present instant of the machine's clock, in microseconds since 1970. */
    static long now() {
        Instant instant = Instant.now();
        return instant.getEpochSecond() * 1_000_000L + instant.getNano() / 1_000;
    }

    synchronized void add(String table, Object... values) {
        try {
            out.write(table);
            for (Object value : values) {
                out.write('\t');
                out.write(String.valueOf(value));
            }
            out.write('\n');
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    synchronized void flush() {
        try {
            out.flush();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
