import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** A producer's records in the order of their instants: int64 instant, int32 key, int32 size of the value. */
final class Schedule implements AutoCloseable {
    private final DataInputStream in;

    Schedule(Path file) throws IOException {
        in = new DataInputStream(new BufferedInputStream(Files.newInputStream(file)));
    }

    /** Microseconds since the scenario's zero; a key of -1 is none; a size of -1 is a tombstone. */
    record Entry(long at, int key, int size) {}

    /** The next record; null at the end. */
    Entry next() throws IOException {
        try {
            return new Entry(in.readLong(), in.readInt(), in.readInt());
        } catch (EOFException end) {
            return null;
        }
    }

    @Override
    public void close() throws IOException {
        in.close();
    }
}
