//! A client of the PostgreSQL protocol, as far as it is needed here: what was sent and what came back, message by
//! message, with nothing in between that could send, read or wait by itself.
//!
//! Invariant: [`Client::poll`] never waits, so who drives several clients decides in which order things happen.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use onrush::Database;

/// What a statement, or several sent at once, came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// One for each statement that was done, such as `INSERT 0 1`.
    pub tags: Vec<String>,
    /// Rows, each of its fields as text; none is NULL. Those of a COPY are here by lines.
    pub rows: Vec<Vec<Option<String>>>,
    /// SQLSTATE and message.
    pub error: Option<(String, String)>,
    /// The server has ended the connection.
    pub is_over: bool,
}

impl Answer {
    /// The SQLSTATE, if it is an error.
    pub fn state(&self) -> Option<&str> {
        self.error.as_ref().map(|(state, _)| state.as_str())
    }
}

/// One connection that was let in.
pub struct Client {
    stream: UnixStream,
    input: Vec<u8>,
    answer: Answer,
    /// *Ready* messages that are still to come.
    awaited: usize,
    /// To be sent when the server asks for the rows of a COPY.
    copy_data: Option<Vec<u8>>,
    /// The database whose log it writes when it waits for a commit, where nobody else does.
    database: Option<Database>,
}

/// What is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A text, as a simple query.
    Simple(String),
    /// A text with its parameters, parsed, bound and run in one go.
    Extended(String, Vec<String>),
    /// The same text with several sets of parameters, each run and synced, all sent in one go.
    Pipelined(String, Vec<Vec<String>>),
    /// The same, each run, and one Sync behind all of them.
    Batched(String, Vec<Vec<String>>),
    /// A COPY FROM STDIN and its lines.
    CopyIn(String, String),
}

impl Client {
    /// Begins a conversation; returns when the client is in.
    ///
    /// # Errors
    /// The server refuses, or hangs up.
    pub fn begin(stream: UnixStream) -> io::Result<Client> {
        let mut client = Client {
            stream,
            input: Vec::new(),
            answer: Answer::default(),
            awaited: 1,
            copy_data: None,
            database: None,
        };
        let body = b"\0\x03\0\0user\0prover\0\0";
        let mut first = length_of(body.len()).to_vec();
        first.extend_from_slice(body);
        client.stream.write_all(&first)?;
        let answer = client.wait()?;
        match answer.error {
            Some((state, message)) => Err(io::Error::other(format!("{state}: {message}"))),
            None if answer.is_over => Err(io::Error::other("the server hung up")),
            None => Ok(client),
        }
    }

    /// Sends a request. Its answer is complete when [`poll`](Self::poll) says so.
    ///
    /// # Errors
    /// The server has hung up.
    pub fn send(&mut self, request: &Request) -> io::Result<()> {
        let mut output = Vec::new();
        self.awaited += 1;
        match request {
            Request::Simple(text) => message(&mut output, b'Q', &[text.as_bytes(), b"\0"]),
            Request::CopyIn(text, lines) => {
                message(&mut output, b'Q', &[text.as_bytes(), b"\0"]);
                self.copy_data = Some(lines.clone().into_bytes());
            }
            Request::Extended(text, values) => {
                parse(&mut output, text);
                run(&mut output, values);
                sync(&mut output);
            }
            Request::Pipelined(text, sets) => {
                parse(&mut output, text);
                for values in sets {
                    run(&mut output, values);
                    sync(&mut output);
                }
                self.awaited += sets.len().saturating_sub(1);
            }
            Request::Batched(text, sets) => {
                parse(&mut output, text);
                sets.iter().for_each(|values| run(&mut output, values));
                sync(&mut output);
            }
        }
        self.stream.set_nonblocking(false)?;
        self.stream.write_all(&output)
    }

    /// Takes what has come, and gives the answer if it is complete.
    ///
    /// # Errors
    /// The socket fails otherwise than by its end, which is an answer.
    pub fn poll(&mut self) -> io::Result<Option<Answer>> {
        self.stream.set_nonblocking(true)?;
        self.go_on()
    }

    /// From here on the log of this database is written while this client waits for its commits.
    #[must_use]
    pub fn writing_the_log_of(self, database: &Database) -> Client {
        Client { database: Some(database.clone()), ..self }
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    pub fn wait(&mut self) -> io::Result<Answer> {
        if let Some(database) = self.database.clone() {
            return self.wait_writing(&database);
        }
        self.stream.set_nonblocking(false)?;
        loop {
            if let Some(answer) = self.go_on()? {
                return Ok(answer);
            }
        }
    }

    fn wait_writing(&mut self, database: &Database) -> io::Result<Answer> {
        loop {
            if let Some(answer) = self.poll()? {
                return Ok(answer);
            }
            if database.awaited_commits() > 0 {
                // A log that has failed says so to those who wait for it.
                let _ = database.write_log();
            }
            std::thread::yield_now();
        }
    }

    /// Sends a text and waits for what it comes to.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    pub fn ask(&mut self, text: &str) -> io::Result<Answer> {
        match self.send(&Request::Simple(text.to_owned())) {
            Ok(()) => self.wait(),
            Err(_) => Ok(Answer { is_over: true, ..Answer::default() }),
        }
    }

    fn go_on(&mut self) -> io::Result<Option<Answer>> {
        loop {
            while let Some((kind, body)) = self.next_message() {
                self.take(kind, &body)?;
                if self.awaited == 0 {
                    return Ok(Some(std::mem::take(&mut self.answer)));
                }
            }
            let mut bytes = [0; 16 << 10];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Ok(Some(self.over())),
                Ok(count) => self.input.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Ok(Some(self.over()));
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn over(&mut self) -> Answer {
        self.awaited = 0;
        Answer { is_over: true, ..std::mem::take(&mut self.answer) }
    }

    fn next_message(&mut self) -> Option<(u8, Vec<u8>)> {
        let header = self.input.get(..5)?;
        let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize + 1;
        let kind = header[0];
        let body = self.input.get(5..length)?.to_vec();
        self.input.drain(..length);
        Some((kind, body))
    }

    fn take(&mut self, kind: u8, body: &[u8]) -> io::Result<()> {
        match kind {
            b'C' => self.answer.tags.push(text_at(body, 0)),
            b'D' => self.answer.rows.push(fields(body)),
            b'd' => {
                let line = String::from_utf8_lossy(body);
                let of_line = |field: &str| (field != "\\N").then(|| field.trim_end().to_owned());
                let row = line.trim_end_matches('\n').split('\t').map(of_line).collect();
                self.answer.rows.push(row);
            }
            b'E' => self.answer.error = self.answer.error.take().or(Some(error_of(body))),
            b'G' => {
                let mut output = Vec::new();
                message(&mut output, b'd', &[&self.copy_data.take().unwrap_or_default()]);
                message(&mut output, b'c', &[]);
                self.stream.write_all(&output)?;
            }
            b'Z' => self.awaited -= 1,
            _ => {}
        }
        Ok(())
    }
}

/// Parse of the statement without a name.
fn parse(output: &mut Vec<u8>, text: &str) {
    message(output, b'P', &[b"\0", text.as_bytes(), b"\0\0\0"]);
}

fn sync(output: &mut Vec<u8>) {
    message(output, b'S', &[]);
}

/// Bind and Execute of the statement without a name.
fn run(output: &mut Vec<u8>, values: &[String]) {
    let count = u16::try_from(values.len()).unwrap_or(u16::MAX).to_be_bytes();
    let mut body = vec![0, 0, 0, 0];
    body.extend_from_slice(&count);
    for value in values {
        body.extend_from_slice(&(value.len() as u32).to_be_bytes());
        body.extend_from_slice(value.as_bytes());
    }
    body.extend_from_slice(&[0, 0]);
    message(output, b'B', &[&body]);
    message(output, b'E', &[&[0, 0, 0, 0, 0]]);
}

fn message(output: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    output.push(kind);
    output.extend_from_slice(&length_of(parts.iter().map(|part| part.len()).sum()));
    parts.iter().for_each(|part| output.extend_from_slice(part));
}

/// A length counts itself.
fn length_of(body_bytes: usize) -> [u8; 4] {
    (body_bytes as u32 + 4).to_be_bytes()
}

fn text_at(body: &[u8], at: usize) -> String {
    let text = body.get(at..).unwrap_or_default();
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    String::from_utf8_lossy(&text[..end]).into_owned()
}

fn fields(body: &[u8]) -> Vec<Option<String>> {
    let mut fields = Vec::new();
    let mut at = 2;
    while let Some(length) = body.get(at..at + 4) {
        let length = i32::from_be_bytes([length[0], length[1], length[2], length[3]]);
        at += 4;
        let bytes = usize::try_from(length).ok().and_then(|length| body.get(at..at + length));
        at += bytes.map_or(0, <[u8]>::len);
        fields.push(bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()));
    }
    fields
}

fn error_of(body: &[u8]) -> (String, String) {
    let (mut state, mut told) = (String::new(), String::new());
    let mut at = 0;
    while let Some(kind) = body.get(at).filter(|kind| **kind != 0) {
        let text = text_at(body, at + 1);
        at += text.len() + 2;
        match kind {
            b'C' => state = text,
            b'M' => told = text,
            _ => {}
        }
    }
    (state, told)
}
