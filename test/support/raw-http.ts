// Bytes on a socket that no client library would send.
import { connect, type Socket } from 'node:net';

/** One answer, with separate head and body. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface Talk {
  /** All text until the server closed. */
  readonly text: string;
  /** Bytes that the server accepted. */
  readonly numWritten: number;
}

/** Writes the parts one after the other as the socket accepts them, and reads until the server closes. */
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
    // A server that rejects a request while it is sent resets the connection; its earlier reply counts.
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
    });
  });
}

/** The answers in a server's text; chunked bodies stay encoded. */
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

/** Connections that the system of the server has completed, whether its process has taken them or not. */
export interface Burst {
  /** What each connection was answered; empty: it was cut. */
  readonly texts: Promise<readonly string[]>;
}

/** Opens a connection for each text and sends it; resolves when all are connected. */
export async function connectBurst(url: string, requests: readonly string[]): Promise<Burst> {
  const connected: Promise<unknown>[] = [];
  const texts = requests.map((request) => {
    let text = '';
    const socket = connect(Number(new URL(url).port), '127.0.0.1').setEncoding('latin1');
    connected.push(new Promise((resolve) => socket.once('connect', resolve).once('close', resolve)));
    if (request !== '') socket.write(request);
    return new Promise<string>((resolve) => {
      socket.on('data', (part: string) => (text += part));
      // A connection that is cut has an answer of no bytes.
      socket.on('error', () => {}).on('close', () => resolve(text));
    });
  });
  await Promise.all(connected);
  return { texts: Promise.all(texts) };
}
