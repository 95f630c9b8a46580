import { connect, type Socket } from 'node:net';

export interface RawAnswer {
  readonly status: number;
  readonly body: string;
}

/** One persistent connection with one request at a time: a minimal client, so that its own time is small. */
export interface RawConnection {
  send(request: Uint8Array): Promise<RawAnswer>;
  readonly socket: Socket;
}

/** The bytes of a POST; headers are `name: value` lines. */
export function formatPost(path: string, body: string, headers: readonly string[] = []): Buffer {
  const lines = [
    `POST ${path} HTTP/1.1`,
    'host: 127.0.0.1',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    ...headers,
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`);
}

export async function openConnection(port: number): Promise<RawConnection> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  let text = '';
  let waiting: { resolve: (answer: RawAnswer) => void; reject: (error: Error) => void } | null = null;
  socket.setEncoding('latin1').on('data', (part: string) => {
    text += part;
    const answer = takeAnswer(text);
    if (answer === null || waiting === null) return;
    text = '';
    const { resolve } = waiting;
    waiting = null;
    resolve(answer);
  });
  const fail = (): void => waiting?.reject(new Error(`the server closed the connection after ${JSON.stringify(text)}`));
  socket.on('error', fail).on('close', fail);
  return {
    socket,
    send: (request) =>
      new Promise((resolve, reject) => {
        // A closed socket reports no error to a later write: the request would wait forever.
        if (socket.destroyed) return reject(new Error('the server closed the connection before the request'));
        waiting = { resolve, reject };
        socket.write(request);
      }),
  };
}

/** A whole answer at the start of `text`; null if incomplete. Chunked bodies end with the last chunk. */
function takeAnswer(text: string): RawAnswer | null {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const head = text.slice(0, end);
  const status = Number(head.slice(9, 12));
  const body = text.slice(end + 4);
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length !== undefined) return body.length >= Number(length) ? { status, body } : null;
  return body.endsWith('0\r\n\r\n') ? { status, body: joinChunks(body) } : null;
}

function joinChunks(body: string): string {
  let text = '';
  for (let at = 0; ;) {
    const start = body.indexOf('\r\n', at) + 2;
    const length = Number.parseInt(body.slice(at, start), 16);
    if (!(length > 0)) return text;
    text += body.slice(start, start + length);
    at = start + length + 2;
  }
}
