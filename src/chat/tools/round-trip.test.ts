import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { createChatTemplate } from '../chat-template.ts';
import type { ChatMessage, ChatTemplate, ToolCall } from '../types.ts';
import { createOutputParser } from './output-parser.ts';
import { collect } from './collect.contract.ts';
import { toToolSpecs } from './tool-specs.ts';

const folder = join(dirname(fileURLToPath(import.meta.url)), '../../../../shared/suites/chat-templates');
const hasSuite = existsSync(folder);
if (!hasSuite) console.log('skipped: no ../shared/suites/chat-templates beside the repository');
const files = hasSuite ? readdirSync(folder).filter((file) => file.endsWith('.jinja')) : [];

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

/** The template's text for the assistant's turn after its header. */
function writtenFor(template: ChatTemplate, turn: ChatMessage): string {
  const question: ChatMessage[] = [{ role: 'user', content: 'QUESTION' }];
  const { text } = template.render([...question, turn], { tools: TOOLS, addGenerationPrompt: false });
  const { opens = [], closes = [] } = template.dialect.reasoning ?? {};
  let prompt = template.render(question, { tools: TOOLS }).text;
  // Prompts may end in an open or empty reasoning block that the turn lacks or has filled.
  for (const marker of [...closes, ...opens]) {
    while (prompt.trimEnd().endsWith(marker)) prompt = prompt.trimEnd().slice(0, -marker.length);
  }
  let same = 0;
  while (same < prompt.length && prompt[same] === text[same]) same++;
  // Command R+ ends every prompt with an instruction, so the turn is everything after the question.
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

const same = (parsed: { name: string; arguments: string }[], calls: readonly ToolCall[]): boolean =>
  JSON.stringify(parsed.map((call) => [call.name, JSON.parse(call.arguments)])) ===
  JSON.stringify(calls.map((call) => [call.name, JSON.parse(call.arguments)]));

test.skipIf(!hasSuite)('reads back calls that a real template writes, with the same names and arguments', () => {
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

const TALK: ChatMessage[] = [
  { role: 'system', content: 'SYSTEM-TEXT' },
  { role: 'user', content: 'FIRST-QUESTION' },
  { role: 'assistant', content: '', toolCalls: CALLS },
  { role: 'tool', content: 'RESULT-B', toolCallId: 'call_b' },
  { role: 'tool', content: 'RESULT-A', toolCallId: 'call_a' },
  { role: 'assistant', content: 'FIRST-ANSWER' },
  { role: 'user', content: 'SECOND-QUESTION' },
];

test.skipIf(!hasSuite)('shows tools, calls and results in order with every real template', () => {
  const failures: string[] = [];
  for (const file of files) {
    const { text } = create(file).render(TALK, { tools: TOOLS });
    if (!text.includes('The weather of a city')) failures.push(`${file}: no tools`);
    if (!text.includes('SYSTEM-TEXT')) failures.push(`${file}: no system text`);
    const parts = ['FIRST-QUESTION', 'Paris', 'RESULT-A', 'RESULT-B', 'FIRST-ANSWER', 'SECOND-QUESTION'];
    const places = parts.map((part) => text.lastIndexOf(part));
    const isInOrder = places.every((place, i) => place > (places[i - 1] ?? -1));
    if (!isInOrder) failures.push(`${file}: ${places.join(' ')} ${text.slice(-1500)}`);
  }
  expect(failures).toEqual([]);
});

test.skipIf(!hasSuite)('keeps content beside calls, or the template drops it, but calls are never lost', () => {
  const lost: string[] = [];
  for (const file of files) {
    const template = create(file);
    const turn: ChatMessage = { role: 'assistant', content: 'CONTENT', reasoning: 'R', toolCalls: CALLS.slice(0, 1) };
    const { text } = template.render([{ role: 'user', content: 'Q' }, turn, { role: 'tool', content: 'X' }], {
      tools: TOOLS,
    });
    expect([file, text.includes('Paris')]).toEqual([file, true]);
    if (!text.includes('CONTENT')) lost.push(file);
  }
  console.log(`templates that drop content beside calls: ${lost.join(', ')}`);
});

test.skipIf(!hasSuite)('renders markers in user and tool text neither as control tokens nor as calls', () => {
  for (const file of files) {
    const { format, reasoning } = create(file).dialect;
    const markers = [...format.triggers, ...format.silent, ...(reasoning?.opens ?? []), ...(reasoning?.closes ?? [])];
    const spellings = [...new Set(markers)].filter((marker) => /^[<[\]].*[\]>[]$/s.test(marker));
    const template = createChatTemplate({
      source: readFileSync(join(folder, file), 'utf8'),
      architecture: null,
      bosToken: '<BOS>',
      eosToken: '<EOS>',
      specialSpellings: spellings,
    });
    const talk = (evil: string): ChatMessage[] => [
      { role: 'user', content: `Q ${evil}` },
      { role: 'assistant', content: '', toolCalls: [{ ...CALLS[0]!, arguments: JSON.stringify({ city: evil }) }] },
      { role: 'tool', content: `R ${evil}`, toolCallId: 'call_a' },
    ];
    const harmless = template.render(talk('nothing'), { tools: TOOLS }).text;
    for (const marker of spellings) {
      const { text } = template.render(talk(marker), { tools: TOOLS });
      for (const spelling of spellings) {
        expect([file, marker, text.split(spelling).length]).toEqual([file, marker, harmless.split(spelling).length]);
      }
    }
  }
});
