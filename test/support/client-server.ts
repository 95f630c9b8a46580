// A server on loopback with a scripted model `m` and a model `toy` that can embed.
import { afterEach } from 'vitest';
import type { Listening } from '../../src/node/server/serve.ts';
import { createSpokenModel, type SpokenModelOptions } from './spoken-model.ts';
import { createTestServer, entryOf, listenOnLoopback } from './test-server.ts';
import { createToyRuntime } from './toy-runtime.ts';

export const QUESTION = 'How is it in Rome?';
export const CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>';
export const ANSWER = 'It is sunny in Rome.';
export const PLACE = '{"city": "Rome", "isCapital": true}';
/** JSON Schema of `PLACE`. */
export const PLACE_SCHEMA = {
  type: 'object' as const,
  properties: { city: { type: 'string' as const }, isCapital: { type: 'boolean' as const } },
  required: ['city', 'isCapital'],
  additionalProperties: false,
};
/** JSON Schema of the tool's arguments. */
export const CITY_SCHEMA = {
  type: 'object' as const,
  properties: { city: { type: 'string' as const } },
  required: ['city'],
  additionalProperties: false,
};
export const weatherOf = (city: string): string => (city === 'Rome' ? 'sun' : 'rain');
/** The call and its result, as the scripted model's template writes them. */
export const CALL_AND_RESULT = /"city": "Rome"\}\}\n<\/tool_call><\|im_end\|>\n<\|im_start\|>tool\n"?sun"?<\|im_end\|>/;

const open: Listening[] = [];
afterEach(async () => {
  for (const listening of open.splice(0)) await listening.close(1000);
});

/** Serves a model that gives these answers in turn; `requests` has the prompts. */
export async function serve(answers: readonly string[], options: SpokenModelOptions = {}) {
  const spoken = createSpokenModel(answers, options);
  const { model: toy } = await createToyRuntime();
  const entries = [entryOf('m', async () => spoken.model), entryOf('toy', async () => toy)];
  const listening = await listenOnLoopback(createTestServer(entries));
  open.push(listening);
  return { url: listening.url, baseURL: `${listening.url}/v1`, requests: spoken.requests };
}
