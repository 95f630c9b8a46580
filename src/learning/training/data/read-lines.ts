import { RuvLLMError } from '../../../core/errors.ts';
import { type DataLine, parseRecord } from './records.ts';

export const MAX_LINES = 1 << 17;
/** Problems named in an error; the number of all is in it, too. */
const MAX_NAMED = 10;

/**
 * Reads a data set of JSON lines. Malformed lines are refused together, with their numbers: skipping them would train on another data set
 * than the named one.
 */
export function readDataLines(text: string, name: string): readonly DataLine[] {
  const lines: DataLine[] = [];
  const problems: { readonly line: number; readonly problem: string }[] = [];
  let number = 0;
  for (const raw of text.split('\n')) {
    number++;
    const content = (number === 1 ? raw.replace(/^\uFEFF/, '') : raw).trim();
    if (content === '') continue;
    if (lines.length === MAX_LINES) {
      throw new RuvLLMError('limit_exceeded', `${name} has more than ${MAX_LINES} lines`, {
        data: { limit: MAX_LINES },
      });
    }
    try {
      lines.push(parseRecord(parseJson(content), number));
    } catch (error) {
      if (!(error instanceof RuvLLMError)) throw error;
      problems.push({ line: number, problem: error.message.replace(/^: /, '') });
    }
  }
  if (problems.length > 0) throw malformed(name, problems, problems.length + lines.length);
  if (lines.length === 0) throw new RuvLLMError('invalid_option', `${name} has no lines`, { data: { option: 'data' } });
  return lines;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new RuvLLMError('invalid_option', 'not JSON');
  }
}

function malformed(
  name: string,
  problems: readonly { readonly line: number; readonly problem: string }[],
  numLines: number,
): RuvLLMError {
  const named = problems.slice(0, MAX_NAMED).map(({ line, problem }) => `line ${line}: ${problem}`);
  const more = problems.length > MAX_NAMED ? `; ${problems.length - MAX_NAMED} more` : '';
  return new RuvLLMError(
    'invalid_option',
    `${name}: ${problems.length} of ${numLines} lines are malformed: ${named.join('; ')}${more}`,
    { data: { option: 'data', line: problems[0]!.line, numMalformed: problems.length, lines: named } },
  );
}
