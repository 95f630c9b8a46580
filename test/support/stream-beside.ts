// Checks that other clients are unaffected.
import { expect } from 'vitest';

const NEIGHBOUR = {
  model: 'random',
  messages: [{ role: 'user', content: 'tell me something long' }],
  max_tokens: 200,
  ignore_eos: true,
  seed: 5,
  stream: true,
};

async function readNeighbour(url: string, onStart: () => void = () => {}): Promise<string[]> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(NEIGHBOUR),
  });
  let text = '';
  const decoder = new TextDecoder();
  for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(part, { stream: true });
    onStart();
  }
  const data = text.split('\n\n').flatMap((event) => (event.startsWith('data: ') ? [event.slice(6)] : []));
  expect(data.at(-1)).toBe('[DONE]');
  return data.slice(0, -1).map((one) => {
    const { choices } = JSON.parse(one) as { choices: { delta: { content?: string } }[] };
    return choices[0]!.delta.content ?? '';
  });
}

/** Runs `work` while another client streams repeatedly; each stream must equal its result alone. */
export async function withStreamBeside(url: string, work: () => Promise<void>): Promise<void> {
  const alone = await readNeighbour(url);
  expect(alone.length).toBeGreaterThan(100);
  const over = new AbortController();
  let start = (): void => {};
  const started = new Promise<void>((resolve) => (start = resolve));
  const neighbour = (async () => {
    const streams: string[][] = [];
    do streams.push(await readNeighbour(url, start));
    while (!over.signal.aborted);
    return streams;
  })();
  try {
    await started;
    await work();
  } finally {
    over.abort();
    for (const one of await neighbour) expect(one).toEqual(alone);
  }
}
