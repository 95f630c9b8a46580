import { splitFirstWord } from '../../../core/trim.ts';
import { RuvLLMError } from '../../../core/errors.ts';
import type { SavedModel } from '../../model-library.ts';
import { OPTION_NAMES } from './options.ts';

const ROLES = ['system', 'user', 'assistant'];

function fail(line: number, reason: string, code: 'invalid_option' | 'unsupported' = 'invalid_option'): never {
  throw new RuvLLMError(code, `Modelfile, line ${line}: ${reason}`, { data: { line } });
}

/** Values of a parameter: numbers and booleans as such, other text as it is. */
export function readParameterValue(text: string): string | number | boolean {
  if (text === 'true' || text === 'false') return text === 'true';
  return text !== '' && Number.isFinite(Number(text)) ? Number(text) : text;
}

/** Splits a Modelfile into instructions; text in `"""` may have several lines. */
function* readInstructions(source: string): Generator<{ line: number; word: string; text: string }> {
  const lines = source.split(/\r?\n/);
  for (let index = 0; index < lines.length; index++) {
    const line = index + 1;
    const content = lines[index]!.trim();
    if (content === '' || content.startsWith('#')) continue;
    const [word, rest] = splitFirstWord(content);
    const opening = /^(?:(\w+)\s+)?"""/.exec(rest);
    if (opening === null) {
      yield { line, word: word.toUpperCase(), text: rest };
      continue;
    }
    let text = rest.slice(opening[0].length);
    while (!text.includes('"""')) {
      const next = lines[++index];
      if (next === undefined) fail(line, 'the text that begins with """ does not end');
      text += `\n${next}`;
    }
    const body = text.slice(0, text.indexOf('"""')).replace(/^\n/, '');
    // In quotes, so that white space and quotes at its ends stay.
    const quoted = body === '' ? '' : `"${body}"`;
    yield { line, word: word.toUpperCase(), text: opening[1] === undefined ? quoted : `${opening[1]} ${quoted}` };
  }
}

const unquote = (text: string): string => /^"([\s\S]*)"$/.exec(text)?.[1] ?? text;

/** Reads the supported instructions: FROM, PARAMETER, SYSTEM, ADAPTER, MESSAGE and LICENSE. */
export function parseModelfile(source: string): Omit<SavedModel, 'createdMs'> {
  let from: string | null = null;
  let system: string | null = null;
  let adapter: string | null = null;
  const parameters: Record<string, unknown> = {};
  const messages: { role: string; content: string }[] = [];
  for (const { line, word, text } of readInstructions(source)) {
    if (word !== 'LICENSE' && text === '') fail(line, `${word} requires a value`);
    if (word === 'FROM') from = unquote(text);
    else if (word === 'SYSTEM') system = unquote(text);
    else if (word === 'ADAPTER') adapter = unquote(text);
    else if (word === 'LICENSE') continue;
    else if (word === 'PARAMETER') {
      const [name, value] = splitFirstWord(text);
      if (value === '') fail(line, 'PARAMETER requires a name and a value');
      if (!OPTION_NAMES.includes(name)) {
        fail(line, `the parameter ${name} is not supported (supported: ${OPTION_NAMES.join(', ')})`, 'unsupported');
      }
      if (name === 'stop')
        parameters['stop'] = [...((parameters['stop'] as string[] | undefined) ?? []), unquote(value)];
      else parameters[name] = readParameterValue(unquote(value));
    } else if (word === 'MESSAGE') {
      const [role, content] = splitFirstWord(text);
      if (content === '') fail(line, 'MESSAGE requires a role and a text');
      if (!ROLES.includes(role)) fail(line, `the role must be one of ${ROLES.join(', ')}, got ${role}`);
      messages.push({ role, content: unquote(content) });
    } else if (word === 'TEMPLATE') {
      fail(line, "TEMPLATE is not supported: the chat template of the model's file is used", 'unsupported');
    } else fail(line, `unknown instruction ${word.slice(0, 40)}`);
  }
  if (from === null) throw new RuvLLMError('invalid_option', 'the Modelfile has no FROM');
  return { from, system, parameters, adapter, messages };
}

/** The Modelfile of a saved model. */
export function writeModelfile({ from, system, parameters, adapter, messages }: Omit<SavedModel, 'createdMs'>): string {
  // Readers leave out the line break after the opening quotes.
  const block = (text: string): string => `"""${text.startsWith('\n') ? '\n' : ''}${text}"""`;
  const quote = (text: string): string => (text.includes('\n') ? block(text) : text);
  const writeValue = (value: unknown): string =>
    typeof value !== 'string' ? JSON.stringify(value) : value.includes('\n') ? block(value) : `"${value}"`;
  return [
    `FROM ${from}`,
    ...(adapter === null ? [] : [`ADAPTER ${adapter}`]),
    ...Object.entries(parameters).flatMap(([name, value]) =>
      [value].flat().map((one) => `PARAMETER ${name} ${writeValue(one)}`),
    ),
    ...(system === null ? [] : [`SYSTEM ${quote(system)}`]),
    ...messages.map(({ role, content }) => `MESSAGE ${role} ${quote(content)}`),
    '',
  ].join('\n');
}
