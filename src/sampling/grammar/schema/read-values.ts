import { malformed } from '../limits.ts';
import type { JsonObject, SchemaPlace } from './schema-document.ts';
import { isObject } from './schema-document.ts';

const at = (place: SchemaPlace, keyword: string): string => `${place.pointer}/${keyword}`;

/** A count such as `minLength`: a non-negative integer, 2.0 included. */
export function readCount(value: unknown, place: SchemaPlace, keyword: string): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0) {
    throw malformed(keyword, at(place, keyword), 'must be a non-negative integer');
  }
  return value;
}

export function readNumber(value: unknown, place: SchemaPlace, keyword: string): number {
  if (typeof value !== 'number') throw malformed(keyword, at(place, keyword), 'must be a number');
  return value;
}

export function readText(value: unknown, place: SchemaPlace, keyword: string): string {
  if (typeof value !== 'string') throw malformed(keyword, at(place, keyword), 'must be a string');
  return value;
}

export function readList(value: unknown, place: SchemaPlace, keyword: string): readonly unknown[] {
  if (!Array.isArray(value)) throw malformed(keyword, at(place, keyword), 'must be an array');
  return value;
}

export function readNames(value: unknown, place: SchemaPlace, keyword: string): readonly string[] {
  return readList(value, place, keyword).map((name) => readText(name, place, keyword));
}

export function readMap(value: unknown, place: SchemaPlace, keyword: string): JsonObject {
  if (!isObject(value)) throw malformed(keyword, at(place, keyword), 'must be an object');
  return value;
}
