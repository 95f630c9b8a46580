import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { RuvLLMError } from '../core/errors.ts';
import { createChatTemplate } from './chat-template.ts';
import type { ChatMessage, RenderOptions } from './types.ts';

const folder = join(dirname(fileURLToPath(import.meta.url)), '../../../shared/suites/chat-templates');
const hasSuite = existsSync(folder);
if (!hasSuite) console.log('skipped: no ../shared/suites/chat-templates beside the repository');

const CONVERSATION: ChatMessage[] = [
  { role: 'system', content: 'SYSTEM-TEXT' },
  { role: 'user', content: 'FIRST-QUESTION' },
  { role: 'assistant', content: 'FIRST-ANSWER' },
  { role: 'user', content: 'SECOND-QUESTION' },
];
const TOOLS = [
  {
    type: 'function',
    function: {
      name: 'get_weather',
      description: 'The weather of a city',
      parameters: {
        type: 'object',
        properties: { city: { type: 'string', description: 'Where' }, days: { type: 'integer' } },
        required: ['city'],
      },
    },
  },
];

function create(file: string) {
  return createChatTemplate({
    source: readFileSync(join(folder, file), 'utf8'),
    architecture: null,
    bosToken: '<BOS>',
    eosToken: '<EOS>',
    specialSpellings: ['<|im_start|>', '<|im_end|>'],
    now: () => Date.UTC(2025, 0, 2, 12),
    utcOffsetMinutes: 0,
  });
}

const files = hasSuite ? readdirSync(folder).filter((file) => file.endsWith('.jinja')) : [];

/** The text, or the message of a typed error; any other exception fails the test. */
function attempt(file: string, options: RenderOptions): { text: string; failure: string | null } {
  try {
    return { text: create(file).render(CONVERSATION, options).text, failure: null };
  } catch (error) {
    if (!(error instanceof RuvLLMError) || error.code !== 'template_error') throw error;
    return { text: '', failure: error.message };
  }
}

test.skipIf(!hasSuite)('renders every turn of a conversation in order with every real template', () => {
  const failures: string[] = [];
  for (const file of files) {
    const { text, failure } = attempt(file, {});
    const places = CONVERSATION.map(({ content }) => text.indexOf(content));
    const isInOrder = places.every((place, i) => place > (places[i - 1] ?? -1));
    console.log(`${file}: ${failure ?? `${text.length} characters, turns at ${places.join(' ')}`}`);
    if (failure !== null || !isInOrder) failures.push(`${file}: ${failure ?? places.join(' ')}`);
  }
  expect(failures).toEqual([]);
  expect(files.length).toBeGreaterThan(30);
});

test.skipIf(!hasSuite)('shows the tools in every real template', () => {
  const failures: string[] = [];
  for (const file of files) {
    const { text, failure } = attempt(file, { tools: TOOLS });
    // Command R+ describes tools in its own form (`parameter_definitions`), which OpenAI does not have.
    if (!text.includes('SECOND-QUESTION') && !file.startsWith('Cohere')) failures.push(`${file}: ${failure}`);
    if (!text.includes('get_weather')) console.log(`${file}: shows no tools`);
  }
  expect(failures).toEqual([]);
});
