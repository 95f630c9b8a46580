import { formatPost, openConnection } from './raw-connection.ts';
import type { Served } from './served.ts';

export interface StreamsResult {
  readonly numStreams: number;
  readonly numRight: number;
  readonly numTokens: number;
  readonly tokensPerSecond: number;
}

const ANSWER_TOKENS = 48;
const HEROES = ['cat', 'dog', 'girl named Lily', 'boy named Tim', 'bird', 'frog', 'robot', 'old man'];
const PLACES = [
  'in the park',
  'by the sea',
  'in a big house',
  'on a farm',
  'in the forest',
  'at school',
  'on a hill',
  'in bed',
];

/** Openings of stories, eight thousand different ones with a limited vocabulary: word caches fill up and stay. */
export function openingOf(index: number): string {
  const hero = HEROES[index % HEROES.length]!;
  const place = PLACES[Math.floor(index / HEROES.length) % PLACES.length]!;
  return `Once upon a time there was a ${hero} ${place}. One day number ${index % 1000},`;
}

export interface Told {
  readonly text: string;
  readonly numTokens: number;
}

/** Joins the pieces of a streamed completion; each must be a separate event and the last must be `[DONE]`. */
export function readStream(body: string): Told {
  const events = body.split('\n\n').filter((event) => event !== '' && !event.startsWith(':'));
  let text = '';
  let numTokens = 0;
  for (const [index, event] of events.entries()) {
    if (!event.startsWith('data: ')) throw new Error(`not an event: ${JSON.stringify(event)}`);
    const data = event.slice(6);
    if (data === '[DONE]') {
      if (index !== events.length - 1) throw new Error('text after [DONE]');
      return { text, numTokens };
    }
    const chunk = JSON.parse(data) as { choices: { text: string }[]; usage?: { completion_tokens: number } | null };
    text += chunk.choices[0]?.text ?? '';
    numTokens += chunk.usage?.completion_tokens ?? 0;
  }
  throw new Error(`a stream of ${events.length} events without [DONE]`);
}

export async function tell(served: Served, prompt: string): Promise<Told> {
  const connection = await openConnection(served.port);
  const body = {
    model: 'bench',
    prompt,
    temperature: 0,
    max_tokens: ANSWER_TOKENS,
    ignore_eos: true,
    stream: true,
    stream_options: { include_usage: true },
  };
  const answer = await connection.send(formatPost('/v1/completions', JSON.stringify(body)));
  connection.socket.destroy();
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.body}`);
  return readStream(answer.body);
}

/** Many concurrent stories, each compared with its result alone: a lost, foreign or doubled token changes the text. */
export async function measureStreams(served: Served, numStreams: number): Promise<StreamsResult> {
  const prompts = Array.from({ length: numStreams }, (_, index) => openingOf(index));
  const alone: Told[] = [];
  for (const prompt of prompts) alone.push(await tell(served, prompt));
  if (new Set(alone.map(({ text }) => text)).size < numStreams / 2) throw new Error('all stories are equal');
  const began = performance.now();
  const together = await Promise.all(prompts.map((prompt) => tell(served, prompt)));
  const seconds = (performance.now() - began) / 1000;
  const numRight = together.filter(
    ({ text, numTokens }, index) => text === alone[index]!.text && numTokens === ANSWER_TOKENS,
  ).length;
  const numTokens = together.reduce((sum, one) => sum + one.numTokens, 0);
  return { numStreams, numRight, numTokens, tokensPerSecond: numTokens / seconds };
}
