import { z } from 'zod';
import type { Action } from '../actions.ts';
import type { CommandContext } from '../command.ts';
import { collectOptions, defineFlags, type Flag, type FlagRows, withFlagNamesAsync } from '../flags.ts';
import type { Output } from '../output.ts';
import { readInteger } from '../values.ts';
import { openClient } from './client.ts';
import type { ClientNeeds, MemoryClient } from './client-types.ts';
import { operationOf } from '../../memory/operations/index.ts';

/** How the operations of a client are found, and how the client is opened. */
export interface ClientKind {
  operationOf(name: string): { readonly input: z.ZodType };
  open(context: CommandContext, needs: ClientNeeds): Promise<MemoryClient>;
}

const MEMORY_CLIENT: ClientKind = { operationOf, open: openClient };

interface BaseSpec {
  /** Arguments: `<id>`. */
  readonly args?: string;
  readonly description: string;
  /** Whether a local memory requires a model, by default to embed texts. */
  needsModel?(context: CommandContext): boolean;
  /** Whether texts are embedded, for commands that use the model for more than that. */
  readonly needsVectors?: boolean;
  /** Whether the action works without an embedder, with words only. */
  readonly canOmitModel?: boolean;
  /** Whether the action may create a memory; otherwise a mistyped folder would look like an empty one. */
  readonly canCreate?: boolean;
  /** Input keys of the arguments, in order. */
  readonly keys?: readonly string[];
  /** Rejects the command line before the client is opened. */
  check?(context: CommandContext): void;
}

export interface ClientSpec extends BaseSpec {
  readonly flags?: readonly Flag[];
  run(client: MemoryClient, context: CommandContext, args: readonly string[]): Promise<void>;
}

export interface OperationSpec<T> extends BaseSpec {
  /** Flags of the input; without a placeholder, the operation's schema determines the values and the default. */
  readonly flags?: FlagRows;
  /** Input from other sources than arguments and flags. */
  input?(client: MemoryClient, context: CommandContext): object;
  /** Parts of the result that are added or replaced. */
  extend?(client: MemoryClient, context: CommandContext, result: T): Promise<object>;
  /** Shows the result as text; --json prints it unchanged. */
  show(result: T, context: CommandContext, input: Readonly<Record<string, unknown>>): void;
}

/** An action that uses a client for more than one operation. */
export function clientAction({ open }: Pick<ClientKind, 'open'>, spec: ClientSpec): Action {
  const { args = '', description, flags = [], needsVectors = false, canOmitModel = false, canCreate = false, keys = [] } = spec; // prettier-ignore
  const parameters = args.split(' ').map((name, i): Flag => ({ name, value: null, description, option: keys[i] }));
  return {
    args,
    description,
    flags,
    async run(context, args) {
      spec.check?.(context);
      const client = await open(context, { needsModel: spec.needsModel?.(context) ?? false, needsVectors, canOmitModel, canCreate }); // prettier-ignore
      try {
        await withFlagNamesAsync([...flags, ...parameters], context.values, () => spec.run(client, context, args));
      } finally {
        await client.close();
      }
    },
  };
}

/** An action that runs one operation: arguments and flags become its input. */
export function operationAction<T extends object>(kind: ClientKind, operation: string, spec: OperationSpec<T>): Action {
  const { flags: rows = {}, show, input: readMore, extend, ...base } = spec;
  const { keys = [] } = spec;
  const properties = propertiesOf(kind.operationOf(operation).input);
  const flags = operationFlags(properties, rows);
  const parameters = (spec.args ?? '').split(' ');
  return clientAction(kind, {
    ...base,
    flags,
    async run(client, context, args) {
      const read = (text: string, key: string, i: number): unknown =>
        properties[key]?.type === 'integer' ? readInteger(text, parameters[i]!) : text;
      const input = {
        ...Object.fromEntries(args.map((text, i) => [keys[i], read(text, keys[i]!, i)])),
        ...collectOptions(flags, context.values),
        ...readMore?.(client, context),
      };
      const answer = await client.call<T>(operation, input);
      const result = { ...answer, ...(await extend?.(client, context, answer)) };
      // First, because it may reject the result.
      show(result, context, input);
      context.output.document(result);
    },
  });
}

export const memoryAction = <T extends object>(operation: string, spec: OperationSpec<T>): Action =>
  operationAction(MEMORY_CLIENT, operation, spec);
export const memoryClientAction = (spec: ClientSpec): Action => clientAction(MEMORY_CLIENT, spec);

interface Property {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly default?: unknown;
  readonly items?: Property;
  readonly anyOf?: readonly Property[];
}

function propertiesOf(input: z.ZodType): Readonly<Record<string, Property>> {
  return (z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' }).properties ?? {}) as Record<string, Property>;
}

const PLACEHOLDERS: Readonly<Record<string, string>> = { integer: ' <n>', number: ' <x>', string: ' <text>' };

/** Flags whose values, repetition and default come from the schema, unless the row has a placeholder. */
function operationFlags(properties: Readonly<Record<string, Property>>, rows: FlagRows): readonly Flag[] {
  const complete = Object.entries(rows).map(([syntax, row]) => {
    const [, name, key] = /^(--[a-z-]+) (\w+)$/.exec(syntax) ?? [];
    if (key === undefined || typeof row !== 'string') return [syntax, row] as const;
    const property = properties[key]!;
    const item = property.items ?? property.anyOf?.[0] ?? property;
    const value = item.enum === undefined ? (PLACEHOLDERS[item.type!] ?? '') : ` <${item.enum.join('|')}>`;
    const suffix = property.default == null || value === '' ? '' : `; default ${String(property.default)}`;
    const isList = property.items !== undefined;
    return [`${name}${value}${isList ? '...' : ''} ${key}`, `${row}${suffix}${isList ? ' (repeatable)' : ''}`] as const;
  });
  return defineFlags(Object.fromEntries(complete));
}

/** Filters of a search by similarity. */
export const SIMILARITY_ROW = { '--min-similarity minSimilarity': 'minimum similarity, -1 to 1' };
export const AFTER_ROW = { '--after <next> after': 'continue after a page, at its "next"' };
export const OUTPUT_ROW = { '--output <file>': 'write to this file instead of stdout' };

/** Prints the flag that continues a listing; `next` null: this was the last page. */
export function noteNextPage(output: Output, next: string | null): void {
  if (next !== null) output.note(`next page: --after '${next}'`);
}
