// Bytes on a socket as no client library would send them.
import { connect, type Socket } from 'node:net';

/** One answer as it came, head and body apart. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface Talk {
  /** All that was said until the server closed. */
  readonly text: string;
  /** What the server took of what was written, in bytes. */
  readonly numWritten: number;
}

/** Writes the parts one after the other, as the socket takes them, and reads until the server closes. */
export function talk(
  url: string,
  parts: Iterable<string | Uint8Array> | AsyncIterable<string>,
  onText: (text: string) => void = () => {},
): Promise<Talk> {
  return new Promise((resolve, reject) => {
    let text = '';
    let isOver = false;
    const socket: Socket = connect(Number(new URL(url).port), '127.0.0.1', () => void write());
    const write = async (): Promise<void> => {
      for await (const part of parts) {
        if (isOver) return;
        if (!socket.write(part)) await new Promise((next) => socket.once('drain', next).once('close', next));
      }
    };
    socket.setEncoding('latin1').on('data', (part: string) => onText((text += part)));
    socket.on('close', () => {
      isOver = true;
      resolve({ text, numWritten: socket.bytesWritten - socket.writableLength });
    });
    // A server that refuses what is still being sent resets the connection; what it said before counts.
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
    });
  });
}

/** The answers in what a server said; chunked bodies are left as they are. */
export function parseAnswers(text: string): RawAnswer[] {
  return text
    .split(/(?=HTTP\/1\.[01] \d{3} )/)
    .filter((one) => one.startsWith('HTTP/1.'))
    .map((one) => {
      const end = one.indexOf('\r\n\r\n');
      const [status, ...lines] = one.slice(0, end).split('\r\n');
      const headers = Object.fromEntries(
        lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
      );
      return { status: Number(status!.slice(9, 12)), headers, body: one.slice(end + 4) };
    });
}
