import { malformed, unsupported } from '../limits.ts';
import type { GrammarLimits } from '../limits.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

export interface SchemaPlace {
  readonly value: unknown;
  readonly pointer: string;
  /** The base of relative references here. */
  readonly base: string;
}

export interface SchemaDocument {
  readonly isDraft7: boolean;
  readonly root: SchemaPlace;
  child(place: SchemaPlace, ...path: (string | number)[]): SchemaPlace;
  resolve(place: SchemaPlace, keyword: '$ref' | '$dynamicRef', reference: string): SchemaPlace;
}

const ROOT_BASE = 'schema://root/';
/** Supported dialects; another `$schema` may mean anything. */
const DIALECT = /^https?:\/\/json-schema\.org\/(draft-0[467]|draft\/20(19-09|20-12))\/schema#?$/;
/** Keywords that contain a schema, a list or a map of them: an `$id` elsewhere names nothing. */
const SCHEMA_MAPS = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependencies',
]);
const SCHEMA_KEYWORDS = new Set([
  'allOf',
  'anyOf',
  'oneOf',
  'not',
  'if',
  'then',
  'else',
  'prefixItems',
  'items',
  'additionalItems',
  'contains',
  'additionalProperties',
  'propertyNames',
  'unevaluatedItems',
  'unevaluatedProperties',
  'contentSchema',
]);

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function own(value: JsonObject, key: string): unknown {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}

function resolveUri(reference: string, base: string): string {
  try {
    return new URL(reference, base).href;
  } catch {
    return reference;
  }
}

function escapePointer(key: string | number): string {
  return String(key).replaceAll('~', '~0').replaceAll('/', '~1');
}

function splitFragment(uri: string): [string, string] {
  const hash = uri.indexOf('#');
  return hash < 0 ? [uri, ''] : [uri.slice(0, hash), uri.slice(hash + 1)];
}

/** Checks size and depth without recursion: 60,000 nested arrays must not overflow the stack. */
export function checkSize(root: unknown, limits: GrammarLimits, what = 'schema'): void {
  let level: unknown[] = [root];
  let count = 0;
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > limits.maxDepth * 4) throw malformed(what, '', `nested deeper than ${limits.maxDepth * 4} levels`);
    const next: unknown[] = [];
    for (const value of level) {
      count += typeof value === 'string' ? 1 + value.length : 1;
      if (count > limits.maxSourceLength) throw malformed(what, '', `larger than ${limits.maxSourceLength} characters`);
      if (typeof value === 'number' && !Number.isFinite(value))
        throw malformed(what, '', `${value} is not a JSON number`);
      if (Array.isArray(value)) for (const item of value as unknown[]) next.push(item);
      else if (isObject(value)) {
        for (const [key, item] of Object.entries(value)) {
          count += key.length;
          next.push(item);
        }
      } else if (!['string', 'number', 'boolean'].includes(typeof value) && value !== null) {
        throw malformed(what, '', `a ${typeof value} is not a JSON value`);
      }
    }
    level = next;
  }
}

/** Resolves `$id`, anchors and JSON pointers within one document; other documents are rejected. */
export function openSchema(value: unknown, limits: GrammarLimits): SchemaDocument {
  checkSize(value, limits);
  const declared = isObject(value) ? own(value, '$schema') : undefined;
  if (declared !== undefined && (typeof declared !== 'string' || !DIALECT.test(declared))) {
    throw unsupported('$schema', '/$schema', `${JSON.stringify(declared)} is not a known dialect`);
  }
  const isDraft7 = typeof declared === 'string' && /draft-0[467]/.test(declared);
  const resources = new Map<string, SchemaPlace>();
  const anchors = new Map<string, SchemaPlace>();
  const dynamicAnchors = new Map<string, SchemaPlace[]>();

  const baseOf = (schema: unknown, base: string): string => {
    if (!isObject(schema)) return base;
    const id = own(schema, '$id');
    if (typeof id !== 'string' || (isDraft7 && (Object.hasOwn(schema, '$ref') || id.startsWith('#')))) return base;
    return splitFragment(resolveUri(id, base))[0];
  };
  const register = (place: SchemaPlace): void => {
    const schema = place.value as JsonObject;
    const add = (map: Map<string, SchemaPlace>, key: string): void => {
      if (!map.has(key)) map.set(key, place);
    };
    const id = own(schema, '$id');
    if (typeof id === 'string' && isDraft7 && id.startsWith('#')) add(anchors, `${place.base}${id}`);
    else if (typeof id === 'string' && isDraft7 && id.includes('#')) add(anchors, resolveUri(id, place.base));
    for (const keyword of ['$anchor', '$dynamicAnchor']) {
      const anchor = own(schema, keyword);
      if (typeof anchor !== 'string' || isDraft7) continue;
      add(anchors, `${place.base}#${anchor}`);
      if (keyword === '$dynamicAnchor') dynamicAnchors.set(anchor, [...(dynamicAnchors.get(anchor) ?? []), place]);
    }
  };
  const walk = (place: SchemaPlace, outerBase: string): void => {
    if (Array.isArray(place.value)) {
      place.value.forEach((_, i) => walk(step(place, i), place.base));
      return;
    }
    if (!isObject(place.value)) return;
    if (place.base !== outerBase && !resources.has(place.base)) resources.set(place.base, place);
    register(place);
    for (const key of Object.keys(place.value)) {
      const inside = place.value[key];
      if (SCHEMA_KEYWORDS.has(key)) walk(step(place, key), place.base);
      else if (SCHEMA_MAPS.has(key) && isObject(inside)) {
        for (const name of Object.keys(inside)) walk(step({ ...step(place, key), base: place.base }, name), place.base);
      }
    }
  };
  const step = (place: SchemaPlace, key: string | number): SchemaPlace => {
    const inner = (place.value as Record<string | number, unknown>)[key];
    return { value: inner, pointer: `${place.pointer}/${escapePointer(key)}`, base: baseOf(inner, place.base) };
  };

  const root: SchemaPlace = { value, pointer: '', base: baseOf(value, ROOT_BASE) };
  resources.set(root.base, root);
  walk(root, root.base);

  const followPointer = (from: SchemaPlace, pointer: string, fail: (reason: string) => Error): SchemaPlace => {
    let place = from;
    for (const part of pointer.split('/').slice(1)) {
      const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
      const { value: container } = place;
      if (typeof container !== 'object' || container === null || !Object.hasOwn(container, key)) {
        throw fail(`${pointer} not found`);
      }
      place = step(place, key);
    }
    return place;
  };

  return {
    isDraft7,
    root,
    child: (place, ...path) => path.reduce<SchemaPlace>((at, key) => step(at, key), place),
    resolve(place, keyword, reference) {
      const at = `${place.pointer}/${keyword}`;
      const [uri, fragment] = splitFragment(resolveUri(reference, place.base));
      const resource = resources.get(uri);
      if (resource === undefined) throw unsupported(keyword, at, `${JSON.stringify(reference)} is outside this schema`);
      let decoded = fragment;
      try {
        decoded = decodeURIComponent(fragment);
      } catch {
        throw malformed(keyword, at, `${JSON.stringify(reference)} is not a URI reference`);
      }
      if (decoded === '' || decoded.startsWith('/')) {
        return followPointer(resource, decoded, (reason) => malformed(keyword, at, reason));
      }
      const target = anchors.get(`${uri}#${decoded}`);
      if (target === undefined) throw malformed(keyword, at, `anchor ${JSON.stringify(decoded)} not found`);
      const isDynamic = isObject(target.value) && own(target.value, '$dynamicAnchor') === decoded;
      if (keyword === '$dynamicRef' && isDynamic && dynamicAnchors.get(decoded)!.length > 1) {
        throw unsupported(
          keyword,
          at,
          `more than one $dynamicAnchor ${JSON.stringify(decoded)}: the target depends on the path taken`,
        );
      }
      return target;
    },
  };
}
