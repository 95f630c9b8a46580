/** A response, read to its end. */
export interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
  readonly text: string;
  readonly headers: Headers;
}

export interface Asked {
  readonly token?: string;
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Sent as it is, with the content type of `headers`, instead of a body as JSON. */
  readonly bytes?: Uint8Array<ArrayBuffer>;
  /** Default: a minute. A server that does not answer is a result, not a reason to hang. */
  readonly timeoutMs?: number;
}

const ANSWER_LIMIT_MS = 60_000;

export function request(url: string, path: string, asked: Asked = {}): Promise<Response> {
  const { token, body, bytes, headers, signal, timeoutMs = ANSWER_LIMIT_MS } = asked;
  const sent = bytes ?? (body === undefined ? undefined : JSON.stringify(body));
  const limit = AbortSignal.timeout(timeoutMs);
  return fetch(url + path, {
    method: asked.method ?? (sent === undefined ? 'GET' : 'POST'),
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    },
    signal: signal === undefined ? limit : AbortSignal.any([limit, signal]),
    ...(sent === undefined ? {} : { body: sent }),
  });
}

/** Throws if the connection ends before the answer does. */
export async function ask(url: string, path: string, asked: Asked = {}): Promise<Answer> {
  const response = await request(url, path, asked);
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, body: parse(text) };
}

function parse(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}

/** Times in ms at which the parts of a stream arrived, and its text; `isWhole`: it ended as a complete one does. */
export interface StreamedAnswer {
  readonly status: number;
  readonly id: string | null;
  readonly times: readonly number[];
  readonly text: string;
  readonly isWhole: boolean;
}

export async function stream(url: string, path: string, asked: Asked): Promise<StreamedAnswer> {
  const response = await request(url, path, asked);
  const times: number[] = [];
  const decoder = new TextDecoder();
  let text = '';
  for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
    times.push(performance.now());
    text += decoder.decode(part, { stream: true });
  }
  const id = /"id":"([^"]+)"/.exec(text)?.[1] ?? null;
  return { status: response.status, id, times, text, isWhole: text.endsWith('data: [DONE]\n\n') };
}
