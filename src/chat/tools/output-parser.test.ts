import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TOOL_FORMATS } from './formats/index.ts';
import { createOutputParser } from './output-parser.ts';
import type { OutputParserOptions } from './output-parser.ts';
import { REASONING_FORMATS } from './reasoning.ts';
import { collect } from './collect.contract.ts';
import type { ToolFormat, ToolSpec } from './types.ts';

const TOOLS: ToolSpec[] = [
  { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' }, days: {} } } },
  { name: 'add', parameters: { type: 'object', properties: { a: { type: 'number' } } } },
];
const formatOf = (name: string) => TOOL_FORMATS.find((one) => one.name === name)!;
const think = REASONING_FORMATS.find((one) => one.name === 'think')!;

function parse(pieces: readonly string[], options: Partial<OutputParserOptions> = {}) {
  const parser = createOutputParser({
    format: formatOf('hermes'),
    tools: TOOLS,
    reasoning: think,
    createId: (index) => `id${index}`,
    ...options,
  });
  return collect([...pieces.flatMap((piece) => parser.push(piece)), ...parser.finish()]);
}

const CALL = '{"name": "get_weather", "arguments": {"city": "Ürümqi 😀", "days":  2}}';
const call = (args: string, index = 0, name = 'get_weather') => ({
  index,
  id: `id${index}`,
  name,
  arguments: args,
  outcome: 'complete',
});

describe('calls and other text', () => {
  test('separates reasoning, content and calls, and keeps the exact text of arguments', () => {
    const text = `<think>\nHm.\n</think>\n\nLet me see.\n<tool_call>\n${CALL}\n</tool_call>\n<tool_call>{"name":"add","arguments":{"a":1}}</tool_call>`;
    expect(parse([text])).toEqual({
      content: 'Let me see.',
      reasoning: 'Hm.',
      calls: [call('{"city": "Ürümqi 😀", "days":  2}'), call('{"a":1}', 1, 'add')],
      order: ['reasoning', 'content', 'call 0', 'call 1'],
      error: null,
    });
  });

  test('treats text after a call and whitespace before it as content', () => {
    const answer = parse([`<tool_call>${CALL}</tool_call>\n\nDone.\n`]);
    expect(answer.content).toBe('\n\nDone.\n');
    expect(answer.order).toEqual(['call 0', 'content']);
  });

  test.each([
    ['an unknown tool', '<tool_call>{"name": "rm", "arguments": {}}</tool_call>'],
    ['malformed arguments', '<tool_call>{"name": "add", "arguments": {"a": 1,}}</tool_call>'],
    ['a marker in prose', 'Write <tool_call> before the JSON, then {"name": "add"}.'],
    ['arguments that are not an object', '<tool_call>{"name": "add", "arguments": [1]}</tool_call>'],
    ['another key', '<tool_call>{"name": "add", "shell": "x", "arguments": {}}</tool_call>'],
    ['a truncated call', '<tool_call>{"name": "add", "arguments": {"a": 1'],
    ['half a marker at the end', 'so <tool_c'],
    ['reasoning after the answer began', 'The tag <think> opens, </think> closes.'],
    ['no name', '<tool_call>{"arguments": {"a": 1}}</tool_call>'],
  ])('keeps %s as content, character for character', (_, text) => {
    expect(parse([text])).toEqual({ content: text, reasoning: '', calls: [], order: ['content'], error: null });
  });

  test('keeps text after a valid call as content if it is not a call itself', () => {
    const answer = parse([`<tool_call>${CALL}</tool_call><tool_call>{"name": "rm"}</tool_call>`]);
    expect(answer.calls).toHaveLength(1);
    expect(answer.content).toBe('<tool_call>{"name": "rm"}</tool_call>');
  });

  test('treats calls inside the reasoning as reasoning', () => {
    const answer = parse([`I could <tool_call>${CALL}</tool_call></think>No.`], { isReasoning: true });
    expect(answer.calls).toEqual([]);
    expect(answer.reasoning).toBe(`I could <tool_call>${CALL}</tool_call>`);
    expect(answer.content).toBe('No.');
  });

  test('accepts a JSON object without markers only at the start of the answer', () => {
    const format = formatOf('llama3');
    const bare = '{"name": "add", "parameters": {"a": 1}}';
    expect(parse([`\n${bare}`], { format }).calls).toEqual([call('{"a": 1}', 0, 'add')]);
    expect(parse([`See: ${bare}`], { format }).content).toBe(`See: ${bare}`);
    expect(parse(['{"answer": 42}'], { format }).content).toBe('{"answer": 42}');
    expect(parse([`<|python_tag|>${bare}`], { format }).calls).toEqual([call('{"a": 1}', 0, 'add')]);
  });

  test('accepts arguments before the name, as a string, or missing', () => {
    const args = (json: string) => parse([`<tool_call>${json}</tool_call>`]).calls[0]?.arguments;
    expect(args('{"arguments": {"a": 2}, "name": "add"}')).toBe('{"a": 2}');
    expect(args(String.raw`{"name": "add", "arguments": "{\"a\": 2}"}`)).toBe('{"a": 2}');
    expect(args('{"name": "add"}')).toBe('{}');
  });

  test('accepts the end of the answer for a closing text that a stop token removed', () => {
    expect(parse(['<tool_call>{"name": "add", "arguments": {"a": 2}']).calls).toEqual([call('{"a": 2}', 0, 'add')]);
  });

  test('finds no calls without a format', () => {
    expect(parse([`<tool_call>${CALL}</tool_call>`], { format: null }).content).toBe(`<tool_call>${CALL}</tool_call>`);
  });
});

describe('streamed arguments', () => {
  const stream = (text: string) => parse([...text], { delivery: 'stream' });

  test('reports each piece as it arrives', () => {
    const parser = createOutputParser({
      format: formatOf('hermes'),
      tools: TOOLS,
      reasoning: null,
      delivery: 'stream',
      createId: () => 'x',
    });
    expect(parser.push('<tool_call>{"name": "add", "argu')).toEqual([]);
    expect(parser.push('ments": {"a"')).toEqual([
      { type: 'toolCallStart', index: 0, id: 'x', name: 'add' },
      { type: 'toolCallArguments', index: 0, text: '{"a"' },
    ]);
    expect(parser.push(': 12}')).toEqual([{ type: 'toolCallArguments', index: 0, text: ': 12}' }]);
    expect(parser.push('}')).toEqual([{ type: 'toolCallEnd', index: 0, outcome: 'complete' }]);
    expect(parser.finish()).toEqual([]);
  });

  test('ends a call with invalid arguments as malformed, and treats the following text as content', () => {
    const answer = stream('<tool_call>{"name": "add", "arguments": {"a": 1,}}</tool_call>');
    expect(answer.calls[0]).toMatchObject({ arguments: '{"a": 1,', outcome: 'malformed' });
    expect(answer.content).toBe('}}</tool_call>');
  });

  test('returns unreported text of a failed call as content', () => {
    const late = stream('<tool_call>{"name": "add", "arguments": {"a": 1}, "id": 5 !}');
    expect(late.calls[0]).toMatchObject({ arguments: '{"a": 1}', outcome: 'malformed' });
    expect(late.content).toBe(', "id": 5 !}');
    const text = '<tool_call><function=add><parameter=a>1</parameter> <parameter=b>\nx';
    const cutOff = parse([text], { format: formatOf('qwen-coder'), delivery: 'stream' });
    expect(cutOff.calls[0]).toMatchObject({ arguments: '{"a": 1', outcome: 'truncated' });
    expect(cutOff.content).toBe(' <parameter=b>\nx');
    expect(parse([text], { format: formatOf('qwen-coder') }).content).toBe(text);
  });

  test('ends a call as truncated when the text ends', () => {
    const answer = stream('<tool_call>{"name": "add", "arguments": {"a": "xy');
    expect(answer.calls[0]).toMatchObject({ arguments: '{"a": "xy', outcome: 'truncated' });
    expect(answer.content).toBe('');
  });
});

describe('limits', () => {
  const long = (n: number) => `<tool_call>{"name": "add", "arguments": {"a": "${'x'.repeat(n)}"}}</tool_call>`;

  test.each(['whole', 'stream'] as const)('reports one typed error for a call over the limit (%s)', (delivery) => {
    const options = { delivery, limits: { maxCallChars: 100 } };
    const answer = parse([long(200), 'more'], options);
    expect(answer.error).toBe('invalid_text: a tool call is longer than 100 characters');
    expect(answer.content).toBe('');
    expect(parse([...long(200)], options)).toEqual(answer);
    expect(parse([long(20)], options).error).toBeNull();
  });

  test('reports an error for too many calls', () => {
    const answer = parse([long(1).repeat(3)], { limits: { maxCalls: 2 } });
    expect(answer.calls).toHaveLength(2);
    expect(answer.error).toBe('invalid_text: tool calls are more than 2');
  });

  test('gives up early on an endless name or key', () => {
    const parser = createOutputParser({ format: formatOf('hermes'), tools: TOOLS, reasoning: null });
    const text = `<tool_call>{"name": "${'x'.repeat(5_000)}`;
    expect(collect(parser.push(text)).content).toBe(text);
  });
});

test('never ends an event inside a surrogate pair, wherever the text is cut', () => {
  const text = '😀 and <tool_call>{"name": "add", "arguments": {"a": "😀"}}</tool_call>';
  const parser = createOutputParser({ format: formatOf('hermes'), tools: TOOLS, reasoning: null, delivery: 'stream' });
  const events = [...text.split('').flatMap((unit) => parser.push(unit)), ...parser.finish()];
  const texts = events.flatMap((event) => ('text' in event ? [event.text] : []));
  expect(texts.filter((one) => /\p{Surrogate}/u.test(one))).toEqual([]);
  expect(texts.join('')).toBe('😀 and{"a": "😀"}');
});

test('holds back only a possible marker and the whitespace before it', () => {
  const parser = createOutputParser({ format: formatOf('kimi'), tools: TOOLS, reasoning: think });
  const unit = 'x <|tool_calls_section_beg \n\n<think <|tool_call_begin ';
  let numPushed = 0;
  let numReported = 0;
  let most = 0;
  for (const piece of unit.repeat(200).match(/.{1,7}/gs)!) {
    numPushed += piece.length;
    numReported += collect(parser.push(piece)).content.length;
    most = Math.max(most, numPushed - numReported);
  }
  expect(most).toBeLessThanOrEqual('<|tool_calls_section_begin|>'.length + 3);
  expect(numReported + collect(parser.finish()).content.length).toBe(numPushed);
});

/** Parts of the formats' markers and of JSON, so that random texts resemble calls. */
const FRAGMENTS = [
  ...TOOL_FORMATS.flatMap((format) => [...format.triggers, ...format.silent]),
  ...REASONING_FORMATS.flatMap(({ opens, closes }) => [...opens, ...closes]),
  'get_weather',
  'add',
  '"name": ',
  '"arguments": ',
  '{',
  '}',
  '[',
  ']',
  ', ',
  '"a"',
  ': ',
  '1',
  '\n',
  ' ',
  'é😀',
  '{"name": "add", "arguments": {"a": 1}}',
  '{"city": "x"}',
  '</tool_call>',
  '</function>',
  '[ARGS]',
  '>',
  '```',
  '<parameter=a>',
  '</parameter>',
  '<arg_key>',
  '</arg_key>',
  '<arg_value>',
  '</arg_value>',
  '<|message|>',
];
const anyText = fc
  .array(
    fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...FRAGMENTS) }, fc.string({ unit: 'binary', maxLength: 6 })),
    {
      maxLength: 14,
    },
  )
  .map((parts) => parts.join(''));

const VALUES: Readonly<Record<string, string>> = { city: 'Ürümqi "x"', days: '2', a: '-1.5e3' };

/** One call of each tool from the grammar; null: the family allows only one call. */
function writeCalls(format: ToolFormat, tools: readonly ToolSpec[]): string | null {
  const grammar = format.grammar({ tools, choice: 'required', allowsParallel: true });
  if (tools.length > 1 && grammar.separator === null) return null;
  const jsonOf = (name: string) => (name === 'city' ? JSON.stringify(VALUES[name]) : VALUES[name]!);
  const written = grammar.calls.map(({ prefix, suffix, arguments: args, name }) => {
    if (args.kind === 'json') {
      const keys = name === 'add' ? ['a'] : ['city', 'days'];
      return `${prefix}{${keys.map((key) => `"${key}": ${jsonOf(key)}`).join(', ')}}${suffix}`;
    }
    const list = args.parameters.map((one) => one.begin + (one.isRaw ? VALUES[one.name]! : jsonOf(one.name)) + one.end);
    return prefix + list.join(args.separator) + suffix;
  });
  return grammar.begin + written.join(grammar.separator ?? '') + grammar.end;
}

/** Almost valid calls: spans removed, doubled or replaced. */
const brokenCalls = (format: ToolFormat) =>
  fc
    .array(fc.tuple(fc.nat(), fc.nat(9), fc.oneof(fc.constant(''), fc.constantFrom(...FRAGMENTS))), { maxLength: 3 })
    .map((edits) => {
      let text = writeCalls(format, TOOLS) ?? writeCalls(format, TOOLS.slice(0, 1))!;
      for (const [at, length, put] of edits) {
        const place = at % (text.length + 1);
        text = text.slice(0, place) + put + text.slice(place + length);
      }
      return text;
    });

function cut(text: string, places: readonly number[]): string[] {
  const sorted = [...new Set(places.map((place) => place % (text.length + 1)))].sort((a, b) => a - b);
  return [0, ...sorted].map((from, i) => text.slice(from, sorted[i] ?? text.length));
}

describe.each(TOOL_FORMATS.map((format) => [format.name, format] as const))('format %s', (_, format) => {
  const texts = fc.oneof(anyText, brokenCalls(format));
  const reasoningOf = (i: number) => REASONING_FORMATS[i] ?? null;

  test.each(['whole', 'stream'] as const)('gives the same parts for any cut of any text (%s)', (delivery) => {
    fc.assert(
      fc.property(texts, fc.array(fc.nat()), fc.nat(8), fc.boolean(), (text, places, i, isReasoning) => {
        const options = { format, delivery, reasoning: reasoningOf(i), isReasoning };
        const whole = parse([text], options);
        expect(parse(cut(text, places), options)).toEqual(whole);
        expect(parse(text.split(''), options)).toEqual(whole);
      }),
      { numRuns: 150, seed: 5 },
    );
  });

  test('returns text without a call unchanged', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const silent = new Set([...format.silent, ...(format.startSilent ?? [])]);
        fc.pre(![...silent].some((marker) => text.includes(marker)));
        const answer = parse([text], { format, reasoning: null });
        fc.pre(answer.calls.length === 0);
        expect(answer.content).toBe(text);
      }),
      { numRuns: 300, seed: 6 },
    );
  });

  test('reads back one or two calls written by the grammar, with text around them', () => {
    for (const tools of [TOOLS.slice(0, 1), TOOLS]) {
      const text = writeCalls(format, tools);
      if (text === null) continue;
      for (const delivery of ['whole', 'stream'] as const) {
        const answer = parse([text], { format, delivery, reasoning: null });
        expect(answer.calls.map((one) => [one.name, JSON.parse(one.arguments) as unknown, one.outcome])).toEqual(
          [
            ['get_weather', { city: 'Ürümqi "x"', days: 2 }, 'complete'],
            ['add', { a: -1500 }, 'complete'],
          ].slice(0, tools.length),
        );
        expect(answer.content).toBe('');
      }
    }
  });
});
