import { parse, tokenize } from '@huggingface/jinja';
import { messageOf, RuvLLMError } from '../../core/errors.ts';
import { locateParseError, locateTokenError } from './error-position.ts';
import type { TemplateLimits } from './limits.ts';

/** The parts of the library's syntax tree that the evaluator reads. */
export interface SyntaxNode {
  readonly type: string;
}
export interface ProgramNode extends SyntaxNode {
  readonly body: readonly SyntaxNode[];
}

type Token = ReturnType<typeof tokenize>[number];

/**
 * The tokenizer's clean-up searches for `\s*{%`, which is quadratic in the length of a whitespace run; 1,000 keeps the
 * longest source under a second.
 */
const MAX_WHITESPACE_RUN = 1_000;

const OPENING = new Set(['OpenParen', 'OpenSquareBracket', 'OpenCurlyBracket']);
const CLOSING = new Set(['CloseParen', 'CloseSquareBracket', 'CloseCurlyBracket']);
const OPENING_TAGS = new Set(['if', 'for', 'macro', 'call', 'filter']);
/** Words the parser recurses on without a bracket: `not not x`, `- - x`, `a if b else c if d else e`. */
const RECURSIVE_WORDS = new Set(['not', 'else']);

function fail(message: string, data: Record<string, number>): never {
  throw new RuvLLMError('template_error', `chat template refused: ${message}`, { data });
}

/** Rejects nesting that would overflow the parser's stack. */
function checkNesting(tokens: readonly Token[], maxNesting: number): void {
  let brackets = 0;
  let tags = 0;
  // Depth per open tag; an `elif` is an `if` nested in its predecessor.
  const open: number[] = [];
  let words = 0;
  let calls = 0;
  tokens.forEach((token, index) => {
    const previous = tokens[index - 1]?.type;
    if (OPENING.has(token.type)) {
      brackets++;
      if (token.type === 'OpenParen' && previous === 'CloseParen') calls++;
    } else if (CLOSING.has(token.type)) brackets--;
    else if (token.type === 'CloseStatement' || token.type === 'CloseExpression') brackets = words = calls = 0;
    else if (token.type === 'UnaryOperator') words++;
    else if (token.type === 'Identifier' && previous === 'OpenStatement') {
      if (OPENING_TAGS.has(token.value)) open.push(1);
      if (token.value === 'elif' && open.length > 0) open[open.length - 1]! += 1;
      if (OPENING_TAGS.has(token.value) || token.value === 'elif') tags++;
      else if (token.value.startsWith('end') && token.value !== 'endset') tags -= open.pop() ?? 0;
    } else if (token.type === 'Identifier' && RECURSIVE_WORDS.has(token.value)) words++;
    const depth = brackets + tags + words + calls;
    if (depth > maxNesting) fail(`nested ${depth} deep, limit ${maxNesting}`, { depth, max: maxNesting });
  });
}

/** Parses a chat template's source, or throws `template_error`. */
export function parseTemplate(source: string, limits: TemplateLimits): ProgramNode {
  if (source.length > limits.maxSourceChars) {
    fail(`${source.length} characters, limit ${limits.maxSourceChars}`, {
      length: source.length,
      max: limits.maxSourceChars,
    });
  }
  const run = new RegExp(`\\s{${MAX_WHITESPACE_RUN}}`).exec(source);
  if (run !== null) {
    fail(`more than ${MAX_WHITESPACE_RUN} whitespace characters at ${run.index}`, { offset: run.index });
  }
  let tokens: Token[] | null = null;
  try {
    tokens = tokenizeSource(source);
    checkNesting(tokens, limits.maxNesting);
    return parse(tokens);
  } catch (error) {
    if (error instanceof RuvLLMError) throw error;
    const message = messageOf(error);
    const position =
      tokens === null ? locateTokenError(source, tokenizeSource) : locateParseError(source, tokens, parse);
    const reason = position === null ? 'unexpected end, a tag is not closed' : `${message} (${position})`;
    throw new RuvLLMError('template_error', `chat template does not parse: ${reason}`, {
      cause: error,
      data: { position },
    });
  }
}

const tokenizeSource = (source: string): Token[] => tokenize(source, { lstrip_blocks: true, trim_blocks: true });
