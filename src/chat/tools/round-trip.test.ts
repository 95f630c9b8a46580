import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { createChatTemplate } from '../chat-template.ts';
import type { ChatMessage, ChatTemplate, ToolCall } from '../types.ts';
import { createOutputParser } from './output-parser.ts';
import { collect } from './testing.ts';
import { toToolSpecs } from './tool-specs.ts';

const folder = join(dirname(fileURLToPath(import.meta.url)), '../../../../shared/suites/chat-templates');
const isThere = existsSync(folder);
if (!isThere) console.log('skipped: no ../shared/suites/chat-templates beside the repository');
const files = isThere ? readdirSync(folder).filter((file) => file.endsWith('.jinja')) : [];

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
  {
    type: 'function',
    function: {
      name: 'add',
      description: 'Adds up',
      parameters: { type: 'object', properties: { a: { type: 'number' }, rest: { type: 'array' } } },
    },
  },
];
const CALLS: ToolCall[] = [
  { id: 'call_a', name: 'get_weather', arguments: '{"city": "Paris \\"é\\" 😀\\n{", "days": 3}' },
  { id: 'call_b', name: 'add', arguments: '{"a": -1.5, "rest": [1, null, true, {"k": "v"}]}' },
];

function create(file: string): ChatTemplate {
  return createChatTemplate({
    source: readFileSync(join(folder, file), 'utf8'),
    architecture: null,
    bosToken: '<BOS>',
    eosToken: '<EOS>',
    specialSpellings: [],
    now: () => Date.UTC(2025, 0, 2, 12),
    utcOffsetMinutes: 0,
  });
}

/** What the template writes for the assistant's turn: all behind its header. */
function writtenFor(template: ChatTemplate, turn: ChatMessage): string {
  const question: ChatMessage[] = [{ role: 'user', content: 'QUESTION' }];
  const { text } = template.render([...question, turn], { tools: TOOLS, addGenerationPrompt: false });
  const { opens = [], closes = [] } = template.dialect.reasoning ?? {};
  let prompt = template.render(question, { tools: TOOLS }).text;
  // Prompts may end in a reasoning block, open or empty, that the turn has not or has filled.
  for (const marker of [...closes, ...opens]) {
    while (prompt.trimEnd().endsWith(marker)) prompt = prompt.trimEnd().slice(0, -marker.length);
  }
  let same = 0;
  while (same < prompt.length && prompt[same] === text[same]) same++;
  // Command R+ ends every prompt with an instruction: there the turn is all behind the question.
  return text.slice(same === prompt.length ? same : text.lastIndexOf('QUESTION') + 'QUESTION'.length);
}

function parse(template: ChatTemplate, turn: ChatMessage) {
  const written = writtenFor(template, turn);
  const { format, reasoning } = template.dialect;
  const places = (markers: readonly string[] = []) => markers.map((marker) => written.indexOf(marker));
  const isReasoning =
    places(reasoning?.opens).every((place) => place < 0) && places(reasoning?.closes).some((place) => place > 0);
  const parser = createOutputParser({ format, tools: toToolSpecs(TOOLS), reasoning, isReasoning });
  return { written, ...collect([...parser.push(written), ...parser.finish()]) };
}

const same = (got: { name: string; arguments: string }[], calls: readonly ToolCall[]): boolean =>
  JSON.stringify(got.map((call) => [call.name, JSON.parse(call.arguments)])) ===
  JSON.stringify(calls.map((call) => [call.name, JSON.parse(call.arguments)]));

test.skipIf(!isThere)('calls that a real template writes are read back with the same names and arguments', () => {
  const rows: string[] = [];
  const failures: string[] = [];
  for (const file of files) {
    const template = create(file);
    const { dialect } = template;
    const one = parse(template, { role: 'assistant', content: '', toolCalls: CALLS.slice(0, 1) });
    const thought = parse(template, {
      role: 'assistant',
      content: '',
      reasoning: 'REASON',
      toolCalls: CALLS.slice(0, 1),
    });
    const isOneBack = same(one.calls, CALLS.slice(0, 1));
    let isTwoBack = false;
    if (dialect.allowsParallel) {
      const two = parse(template, { role: 'assistant', content: '', toolCalls: CALLS });
      isTwoBack = same(two.calls, CALLS);
      if (!isTwoBack) failures.push(`${file}: two of ${JSON.stringify(two)}`);
    }
    if (!isOneBack) failures.push(`${file}: one of ${JSON.stringify(one)}`);
    let reasoned = thought.written.includes('REASON') ? 'NO' : 'hidden';
    if (thought.reasoning === 'REASON') reasoned = 'yes';
    if (reasoned === 'NO') failures.push(`${file}: reasoning of ${JSON.stringify(thought)}`);
    rows.push(
      [
        file.replace('.jinja', ''),
        dialect.format.name,
        dialect.showsTools ? 'template' : 'ours',
        dialect.showsCalls ? 'template' : 'ours',
        dialect.showsResults ? 'template' : 'user',
        isOneBack ? 'yes' : 'NO',
        dialect.allowsParallel ? (isTwoBack ? 'yes' : 'NO') : 'split',
        `${dialect.reasoning?.name ?? '-'}/${dialect.reasoningField ?? '-'}/${reasoned}`,
        dialect.argumentsForm,
      ].join(' | '),
    );
  }
  console.log(`template | format | tools | calls | results | one | two | reasoning | arguments\n${rows.join('\n')}`);
  expect(failures).toEqual([]);
});
