package clients

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A server is `onrush serve` on a fresh folder; what it listens on stays the same over a kill.
type server struct {
	t       *testing.T
	folder  string
	address string
	process *exec.Cmd
}

func newServer(t *testing.T) *server {
	s := &server{t: t, folder: filepath.Join(t.TempDir(), "database"), address: "127.0.0.1:0"}
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *server) start() {
	s.process = exec.Command(os.Getenv("ONRUSH_BIN"), "serve", s.folder, "--listen", s.address)
	output, err := s.process.StdoutPipe()
	check(s.t, err)
	check(s.t, s.process.Start())
	line, err := bufio.NewReader(output).ReadString('\n')
	check(s.t, err)
	s.address = strings.TrimPrefix(strings.TrimSpace(line), "listening on ")
}

// kill ends the server as `kill -9` does.
func (s *server) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

func (s *server) url() string {
	return "postgres://test@" + s.address + "/onrush?sslmode=disable"
}

func connect(t *testing.T, s *server) *pgx.Conn {
	connection, err := pgx.Connect(context.Background(), s.url())
	check(t, err)
	t.Cleanup(func() { _ = connection.Close(context.Background()) })
	return connection
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, is, wanted T) {
	t.Helper()
	if is != wanted {
		t.Fatalf("is %v, wanted %v", is, wanted)
	}
}

// moment is the same in every test, to the microsecond.
var moment = time.Date(2026, 2, 28, 12, 30, 0, 123_456_000, time.UTC)
