import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.Comparator;

/** `onrush serve` on a fresh folder; what it listens on stays the same over a kill. */
final class Server implements AutoCloseable {
    private final Path folder = Files.createTempDirectory("onrush-");
    private String address = "127.0.0.1:0";
    private Process process;

    Server() throws IOException {
        start();
    }

    void start() throws IOException {
        String database = folder.resolve("database").toString();
        process = new ProcessBuilder(System.getenv("ONRUSH_BIN"), "serve", database, "--listen", address)
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        BufferedReader output = new BufferedReader(new InputStreamReader(process.getInputStream()));
        address = output.readLine().replace("listening on ", "");
    }

    /** As `kill -9` does. */
    void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    /** A connection; `settings` as in `?name=value`. */
    Connection connect(String settings) throws SQLException {
        return DriverManager.getConnection("jdbc:postgresql://" + address + "/onrush" + settings, "test", "");
    }

    @Override
    public void close() throws Exception {
        kill();
        try (var files = Files.walk(folder)) {
            files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
        }
    }
}
