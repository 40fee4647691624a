// A server of its own for each file of tests: `onrush serve` on a fresh folder.

const { spawn } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const readline = require("node:readline");

class Server {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "onrush-"));
  // What it listens on stays the same over a kill.
  address = "127.0.0.1:0";

  async start() {
    const database = path.join(this.folder, "database");
    const words = ["serve", database, "--listen", this.address];
    this.process = spawn(process.env.ONRUSH_BIN, words, { stdio: ["ignore", "pipe", "ignore"] });
    for await (const line of readline.createInterface(this.process.stdout)) {
      this.address = line.replace("listening on ", "");
      return this;
    }
    throw new Error("the server has not started");
  }

  /** As `kill -9` does. */
  async kill() {
    const gone = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGKILL");
    await gone;
  }

  async end() {
    await this.kill();
    fs.rmSync(this.folder, { recursive: true });
  }

  get url() {
    return `postgres://test@${this.address}/onrush`;
  }
}

module.exports = { Server };
