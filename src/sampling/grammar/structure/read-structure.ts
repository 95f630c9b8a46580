import type { Fuel, GrammarLimits } from '../limits.ts';
import { malformed } from '../limits.ts';
import { checkSize, isObject } from '../schema/schema-document.ts';
import type { JsonObject } from '../schema/schema-document.ts';
import type { CompiledGrammar } from '../types.ts';
import { jsonClosingBytes } from './closing.ts';
import type { JsonPart, Part, TextPart } from './parts.ts';
import { isEscapable, mayForce, overlaps } from './json-without.ts';
import { createRawBounds, type RawBounds } from './raw-bounds.ts';
import { createTextSearch, createTriggerSearch } from './text-search.ts';
import type { TextSearch } from './text-search.ts';

type Kind = Part['kind'];
type ReadNode = (node: JsonObject, pointer: string, depth: number) => Part;

/** Required and optional members of a node. */
const MEMBERS: { readonly [K in Kind]: readonly [needed: readonly string[], optional: readonly string[]] } = {
  text: [['text'], []],
  json: [['schema'], ['without']],
  raw: [['until'], ['without', 'minLength', 'maxLength']],
  sequence: [['items'], []],
  choice: [['items'], []],
  repeat: [['item', 'separator', 'min', 'max'], []],
  free: [['branches', 'endsAfterBranch'], []],
};

const encoder = new TextEncoder();

/** Which characters of strings may be escaped: those that must be, or any. */
export type Escapes = 'needed' | 'any';
export type CompileSchema = (schema: unknown, escapes: Escapes) => CompiledGrammar;

/** Where a text must not occur, an escape is the only way to write it. */
const escapesOf = (node: JsonObject): Escapes => (node['without'] === undefined ? 'needed' : 'any');

/** The schemas of a structure that is not validated yet. */
export function listSchemas(root: unknown, limits: GrammarLimits): { schema: unknown; escapes: Escapes }[] {
  checkSize(root, limits, 'structure');
  const schemas: { schema: unknown; escapes: Escapes }[] = [];
  const pending: unknown[] = [root];
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    if (Array.isArray(node)) pending.push(...(node as unknown[]).toReversed());
    else if (isObject(node) && node['kind'] === 'json')
      schemas.push({ schema: node['schema'], escapes: escapesOf(node) });
    else if (isObject(node)) pending.push(...Object.values(node).toReversed());
  }
  return schemas;
}

/** Validates a structure and creates its parts; every limit is checked before anything is built. */
export function readStructure(root: unknown, compileSchema: CompileSchema, fuel: Fuel): Part {
  const { limits } = fuel;
  checkSize(root, limits, 'structure');
  let numNodes = 0;

  const fail = (pointer: string, reason: string): never => {
    throw malformed('structure', pointer, reason);
  };
  const checkMembers = (node: JsonObject, needed: readonly string[], optional: readonly string[], pointer: string) => {
    for (const key of needed) if (!Object.hasOwn(node, key)) fail(pointer, `"${key}" is missing`);
    for (const key of Object.keys(node)) {
      if (!needed.includes(key) && !optional.includes(key)) fail(pointer, `"${key}" is unknown`);
    }
  };
  const readText = (value: unknown, pointer: string, isEmptyAllowed: boolean): Uint8Array => {
    if (typeof value !== 'string') return fail(pointer, `must be a string, got ${typeof value}`);
    if (!isEmptyAllowed && value === '') fail(pointer, 'must not be empty');
    // A lone surrogate has no bytes in UTF-8.
    if (/\p{Surrogate}/u.test(value)) fail(pointer, 'contains a lone surrogate');
    const bytes = encoder.encode(value);
    if (bytes.length > limits.maxTextBytes) fail(pointer, `${bytes.length} bytes, the limit is ${limits.maxTextBytes}`);
    fuel.burn(1 + bytes.length, 'a structure');
    return bytes;
  };
  // One search object per text: masks cache vocabulary lookups by it.
  const searches = new Map<string, TextSearch>();
  const readWithout = ({ without }: JsonObject, pointer: string): TextSearch | null => {
    if (without === undefined) return null;
    const bytes = readText(without, `${pointer}/without`, false);
    const key = without as string;
    let search = searches.get(key);
    if (search === undefined) searches.set(key, (search = createTextSearch(bytes)));
    return search;
  };
  const readList = (value: unknown, pointer: string, depth: number, least: number): Part[] => {
    if (!Array.isArray(value)) return fail(pointer, 'must be a list');
    if (value.length < least) fail(pointer, 'must not be empty');
    return value.map((item, i) => read(item, `${pointer}/${i}`, depth + 1));
  };
  const readCount = (value: unknown, pointer: string): number => {
    if (!Number.isSafeInteger(value) || (value as number) < 0) fail(pointer, 'must be a non-negative integer');
    return value as number;
  };
  const readBounds = (node: JsonObject, until: TextSearch, without: TextSearch | null, pointer: string) => {
    const { minLength, maxLength } = node;
    if (minLength === undefined && maxLength === undefined) return null;
    const min = minLength === undefined ? 0 : readCount(minLength, `${pointer}/minLength`);
    const max = maxLength === undefined ? Infinity : readCount(maxLength, `${pointer}/maxLength`);
    if (min > max) fail(pointer, `minLength ${min} exceeds maxLength ${max}`);
    const bounds: RawBounds | null = createRawBounds(min, max, { until, without });
    return bounds ?? fail(`${pointer}/until`, 'no character is allowed before it');
  };
  const textPart = (bytes: Uint8Array): TextPart => ({ kind: 'text', id: ++numNodes, least: bytes.length, bytes });

  const readers: { readonly [K in Kind]: ReadNode } = {
    text: (node, pointer) => textPart(readText(node['text'], `${pointer}/text`, true)),
    json(node, pointer) {
      const without = readWithout(node, pointer);
      const grammar = compileSchema(node['schema'], escapesOf(node));
      if (without !== null && !isEscapable(without)) fail(`${pointer}/without`, 'JSON may contain it outside strings');
      const mayNeedEscapes = without !== null && mayForce(node['schema'], without);
      const part: JsonPart = { kind: 'json', id: ++numNodes, least: 0, grammar, without, mayNeedEscapes };
      return { ...part, least: jsonClosingBytes(part, grammar.start, 0) };
    },
    raw(node, pointer) {
      const until = createTextSearch(readText(node['until'], `${pointer}/until`, false));
      const without = readWithout(node, pointer);
      if (without !== null && overlaps(without.bytes, until.bytes)) {
        fail(`${pointer}/without`, 'must not overlap the start of "until"');
      }
      const untilText = textPart(until.bytes);
      const bounds = readBounds(node, until, without, pointer);
      const least = (bounds?.min ?? 0) + until.bytes.length;
      return { kind: 'raw', id: ++numNodes, least, until, untilText, without, bounds };
    },
    sequence(node, pointer, depth) {
      const items = readList(node['items'], `${pointer}/items`, depth, 0);
      const least = items.reduce((sum, item) => sum + item.least, 0);
      return { kind: 'sequence', id: ++numNodes, least, items };
    },
    choice(node, pointer, depth) {
      const items = readList(node['items'], `${pointer}/items`, depth, 1);
      return { kind: 'choice', id: ++numNodes, least: Math.min(...items.map((item) => item.least)), items };
    },
    repeat(node, pointer, depth) {
      const separator = textPart(readText(node['separator'], `${pointer}/separator`, true));
      const min = readCount(node['min'], `${pointer}/min`);
      const max = node['max'] === null ? Infinity : readCount(node['max'], `${pointer}/max`);
      if (min > max) fail(pointer, `min ${min} exceeds max ${max}`);
      const item = read(node['item'], `${pointer}/item`, depth + 1);
      // Endlessly many of them would fit between two bytes.
      if (item.least + separator.least === 0) fail(pointer, 'an item that may be empty requires a separator');
      const least = min === 0 ? 0 : min * item.least + (min - 1) * separator.least;
      return { kind: 'repeat', id: ++numNodes, least, item, separator, min, max };
    },
    free(node, pointer, depth) {
      const branches = node['branches'];
      if (!Array.isArray(branches)) return fail(`${pointer}/branches`, 'must be a list');
      const { endsAfterBranch } = node;
      if (typeof endsAfterBranch !== 'boolean') return fail(`${pointer}/endsAfterBranch`, 'must be a boolean');
      const triggers: Uint8Array[] = [];
      const parts = branches.map((branch: unknown, i) => {
        const at = `${pointer}/branches/${i}`;
        if (!isObject(branch)) return fail(at, 'must be an object');
        checkMembers(branch, ['trigger', 'node'], [], at);
        triggers.push(readText(branch['trigger'], `${at}/trigger`, false));
        return read(branch['node'], `${at}/node`, depth + 1);
      });
      return { kind: 'free', id: ++numNodes, least: 0, search: createTriggerSearch(triggers), parts, endsAfterBranch };
    },
  };

  function read(node: unknown, pointer: string, depth: number): Part {
    if (!isObject(node)) return fail(pointer, 'must be a node');
    if (depth > limits.maxDepth) fail(pointer, `nested deeper than ${limits.maxDepth} nodes`);
    if (numNodes >= limits.maxNodes) fail(pointer, `more than ${limits.maxNodes} nodes`);
    fuel.burn(1, 'a structure');
    const kind = node['kind'];
    if (typeof kind !== 'string' || !Object.hasOwn(readers, kind)) {
      return fail(`${pointer}/kind`, `must be one of ${Object.keys(readers).join(', ')}`);
    }
    const [needed, optional] = MEMBERS[kind as Kind];
    checkMembers(node, ['kind', ...needed], optional, pointer);
    return readers[kind as Kind](node, pointer, depth);
  }

  return read(root, '/root', 0);
}
