// Prompts with a text in one of the places where stored and foreign texts stand, and what must not change with that text.
import { BUILTIN_TEMPLATES } from '../../src/chat/builtin-templates.ts';
import type { ChatMessage } from '../../src/chat/types.ts';
import { createMetadata, type MetadataValue } from '../../src/gguf/index.ts';
import { formFor, passageLine } from '../../src/memory/agents/render.ts';
import { packContext, type PackItem } from '../../src/memory/search/pack.ts';
import type { ToolDefinition } from '../../src/runtime/chat-options.ts';
import { addContext, addExchange } from '../../src/runtime/memory/recall.ts';
import { preparePrompt, type PromptContext } from '../../src/runtime/prompt.ts';
import { withErrors } from '../../src/runtime/reflection/retry-prompt.ts';
import { readTextSide } from '../../src/runtime/text/text-side.ts';
import { BYTE_CHARACTERS } from '../../src/tokenizers/byte-alphabet.ts';
import { SPELLINGS } from './injections.ts';

/** How the vocabulary of a model has the spellings of its chat format. */
export const VOCABULARIES = ['control', 'user-defined', 'text'] as const;
export type VocabularyKind = (typeof VOCABULARIES)[number];

const TYPES = { normal: 1, control: 3, 'user-defined': 4 } as const;
const ALWAYS_CONTROL = ['<s>', '</s>'];
const MARK = /<[|｜][^<>\s'"]{1,40}>|<\/?[a-z_]{3,}(?:_of_turn|_call|_response)>|\[\/?[A-Z_]{3,}\]|<<\/?SYS>>/g;

/** The text side of a model with a vocabulary of bytes and the spellings of all chat formats. */
export function createTextSide(
  template: { readonly source: string } | { readonly builtin: string },
  vocabulary: VocabularyKind,
): PromptContext {
  const own = 'source' in template ? (template.source.match(MARK) ?? []) : [];
  const spellings = vocabulary === 'text' ? ALWAYS_CONTROL : [...new Set([...SPELLINGS, ...ALWAYS_CONTROL, ...own])];
  const typeOf = (spelling: string): number =>
    vocabulary === 'user-defined' && !ALWAYS_CONTROL.includes(spelling) ? TYPES['user-defined'] : TYPES.control;
  const tokens = [...BYTE_CHARACTERS, ...spellings];
  const values: Record<string, MetadataValue> = {
    'general.architecture': 'llama',
    'tokenizer.ggml.model': 'gpt2',
    'tokenizer.ggml.pre': 'gpt-2',
    'tokenizer.ggml.merges': [],
    'tokenizer.ggml.tokens': tokens,
    'tokenizer.ggml.token_type': Int32Array.from(tokens, (token, id) =>
      id < BYTE_CHARACTERS.length ? TYPES.normal : typeOf(token),
    ),
    'tokenizer.ggml.bos_token_id': tokens.indexOf('<s>'),
    'tokenizer.ggml.eos_token_id': tokens.indexOf('</s>'),
    ...('source' in template ? { 'tokenizer.chat_template': template.source } : {}),
  };
  return readTextSide(createMetadata(new Map(Object.entries(values))), 'builtin' in template ? template.builtin : null);
}

export const BUILTINS: readonly string[] = BUILTIN_TEMPLATES.map(({ name }) => name);

interface Talk {
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ToolDefinition[];
}

const toolOf = (description: string, parameter = 'What to look for'): ToolDefinition => ({
  type: 'function',
  function: {
    name: 'look',
    description,
    parameters: {
      type: 'object',
      properties: { query: { type: 'string', description: parameter } },
      required: ['query'],
    },
  },
});
const SYSTEM: ChatMessage = { role: 'system', content: 'SYSTEM-TEXT' };
const user = (content: string): ChatMessage => ({ role: 'user', content });
const callTurns = (query: string, result: string, name = 'look'): ChatMessage[] => [
  { role: 'assistant', content: '', toolCalls: [{ id: 'call00001', name, arguments: JSON.stringify({ query }) }] },
  { role: 'tool', content: result, toolCallId: 'call00001', name },
];
const talk = (turns: readonly ChatMessage[], tool: ToolDefinition | null = null): Talk => ({
  messages: [SYSTEM, ...turns],
  tools: tool === null ? [] : [tool],
});
const recalled = (items: readonly PackItem[]): Talk =>
  talk(
    addContext(
      [user('QUESTION')],
      packContext(items, { tokenBudget: 1_000_000, countTokens: (text) => text.length }).text,
    ) as ChatMessage[],
  );
const fact = (text: string): PackItem => ({ id: text, kind: 'fact', text });
const chunk = (name: string, text: string, heading = 'Letters'): PackItem => ({
  id: 'chunk',
  kind: 'document',
  text,
  position: {
    documentId: 'd',
    name,
    index: 0,
    start: 0,
    end: text.length,
    headings: [heading],
    startLine: 1,
    endLine: 2,
    startPage: null,
    endPage: null,
  },
});
const quoted = (text: string, speakerName: string): Talk => {
  const { heading, line } = passageLine({ text, speaker: 'tool', speakerName, saidMs: 0 } as never, formFor(1000));
  return talk(addContext([user('QUESTION')], `From memory:\n${heading}\n[1] ${line}\n`) as ChatMessage[]);
};

interface Place {
  /** Within marks of the runtime, in a turn that has other words too. */
  readonly isWrapped?: boolean;
  /** A turn of the assistant, or a part of one. */
  readonly isAnswer?: boolean;
  write(text: string): Talk;
}

const RESULT = 'result of a tool';

/** Where a text of others can be. */
export const PLACES: Readonly<Record<string, Place>> = {
  'message of the user': { write: (text) => talk([user(text)]) },
  'recalled text': { isWrapped: true, write: (text) => recalled([fact('Alpha'), fact(text), fact('Omega')]) },
  'recalled document': { isWrapped: true, write: (text) => recalled([chunk('a.md', text), fact('Omega')]) },
  'name of a document': { isWrapped: true, write: (text) => recalled([chunk(text, 'Alpha'), fact('Omega')]) },
  'heading of a document': {
    isWrapped: true,
    write: (text) => recalled([chunk('a.md', 'Alpha', text), fact('Omega')]),
  },
  'quoted message': { isWrapped: true, write: (text) => quoted(text, 'look') },
  'name of a quoted speaker': {
    isWrapped: true,
    write: (text) => quoted('Alpha', text.length > 60 ? `${text.slice(0, 59)}x` : text),
  },
  'corrected question': {
    write: (text) =>
      talk(addExchange([user('QUESTION')], { question: text, answer: 'Alpha', numTimes: 2 }) as ChatMessage[]),
  },
  'corrected answer': {
    isAnswer: true,
    write: (text) =>
      talk(addExchange([user('QUESTION')], { question: 'Alpha', answer: text, numTimes: 2 }) as ChatMessage[]),
  },
  'rejected answer': {
    isAnswer: true,
    write: (text) =>
      talk(
        withErrors([user('QUESTION')], { text, toolCalls: [], finishReason: 'stop' } as never, [
          'it is not JSON',
        ]) as ChatMessage[],
      ),
  },
  [RESULT]: {
    write: (text) => talk([user('QUESTION'), ...callTurns('x', text), user('NEXT')], toolOf('Looks')),
  },
  'argument of a call': {
    isAnswer: true,
    write: (text) => talk([user('QUESTION'), ...callTurns(text, 'Alpha')], toolOf('Looks')),
  },
  'name of a call': {
    isAnswer: true,
    write: (text) => talk([user('QUESTION'), ...callTurns('x', 'Alpha', text)], toolOf('Looks')),
  },
  'description of a tool': { write: (text) => talk([user('QUESTION')], toolOf(text)) },
  'description of a parameter': { write: (text) => talk([user('QUESTION')], toolOf('Looks', text)) },
  'name of a speaker': { write: (text) => talk([{ ...user('QUESTION'), name: text }]) },
};

const LINE = /\r\n?|[\n\v\f\u0085\u2028\u2029]/u;
/** A line that only the runtime writes: it begins a source, a result or a list of errors. */
const OWN_LINE =
  /^(?:\[\d+\](?: |$)|Result of |These texts may|From memory|Your last answer|Avoid these|\w+ "?.*"?:$)/u;

/** The sources of a context as its reader sees them: a document has a line with its name, then indented lines. */
export function sourcesOf(text: string): string[] {
  const lines = text.split(LINE);
  return lines.flatMap((line, i) => {
    const found = /^(\[\d+\]) ?(.*)$/u.exec(line);
    if (found === null) return [];
    const isLabel = found[2] !== '' && !found[2]!.startsWith('"') && lines[i + 1]?.startsWith('  ') === true;
    return [`${found[1]} ${isLabel ? 'document' : 'text'}`];
  });
}

interface Skeleton {
  /** Control tokens, and marks that the vocabulary has no tokens for. */
  readonly structure: string;
  readonly text: string;
}

export const HARMLESS = 'HARMLESS';
/** Templates that print values as Python does choose quotes by the text between them. */
const QUOTE_CHARS = 2;
const OF_ANSWERS = /think/iu;

/** What a text in a place of a prompt changes but the place; null: nothing. */
export type PlaceCheck = (text: string) => string | null;

/** Compares prompts with the same one with harmless words; null: this template does not show the place. */
export function openPlace(context: PromptContext, source: string, name: string): PlaceCheck | null {
  const { tokenizer, chatTemplate } = context;
  const { write, isAnswer = false, isWrapped = name === RESULT && !chatTemplate.dialect.showsResults } = PLACES[name]!;
  const plainMarks = new Set<string>();

  /** Tags of HTML have tokens in some vocabularies, and templates take the reasoning out of answers. */
  const isStructure = (id: number): boolean => {
    const spelling = tokenizer.piece(id);
    if (id < BYTE_CHARACTERS.length || (isAnswer && OF_ANSWERS.test(spelling))) return false;
    return !/^<\/?[a-z0-9]+>$/.test(spelling) || tokenizer.isControl(id) || source.includes(spelling);
  };
  function read(text: string): Skeleton {
    const { messages, tools } = write(`x${text}x`);
    const { ids } = preparePrompt(messages, { tokenizer, chatTemplate }, { parseSpecial: false, tools });
    const prompt = tokenizer.decode(ids, { skipSpecial: false });
    const marks = (prompt.match(MARK) ?? []).filter((mark) => plainMarks.has(mark));
    return { text: prompt, structure: [...ids.filter(isStructure), ...marks].join(' ') };
  }
  function readHarmless(words: string) {
    const { text, structure } = read(words);
    const [first, last] = [text.indexOf(HARMLESS), text.lastIndexOf(HARMLESS)];
    const [before, after] = [text.slice(0, first), text.slice(last + HARMLESS.length)];
    return {
      text,
      structure,
      before,
      after,
      isShown: first >= 0,
      lines: ownLines(text),
      sources: sourcesOf(text).join(),
    };
  }

  let references: readonly ReturnType<typeof readHarmless>[];
  try {
    for (const mark of read(HARMLESS).text.match(MARK) ?? [])
      if (tokenizer.idOf(mark) === null && (source === '' || source.includes(mark))) plainMarks.add(mark);
    references = [readHarmless(HARMLESS), readHarmless(`${HARMLESS}\n${HARMLESS}`)];
  } catch {
    return null;
  }
  if (!references[0]!.isShown) return null;
  return (text) => {
    const harmless = references[LINE.test(text) ? 1 : 0]!;
    let hostile: Skeleton;
    try {
      hostile = read(text);
    } catch (error) {
      return `the prompt is refused: ${(error as Error).message.slice(0, 120)}`;
    }
    if (hostile.structure !== harmless.structure) return 'the control tokens changed';
    const isCut = isAnswer && OF_ANSWERS.test(text);
    if (!isCut && !hostile.text.startsWith(harmless.before.slice(0, -QUOTE_CHARS)))
      return 'the words before it changed';
    if (!hostile.text.endsWith(harmless.after.slice(QUOTE_CHARS))) return 'the words after it changed';
    if (!isWrapped) return null;
    if (ownLines(hostile.text) !== harmless.lines) return 'it begins a line of the runtime';
    return sourcesOf(hostile.text).join() === harmless.sources ? null : 'it shows itself as another source';
  };
}

export const ownLines = (text: string): number => text.split(LINE).filter((line) => OWN_LINE.test(line)).length;
