import {
  choiceKind,
  integerKind,
  type JsonSchema,
  type Kind,
  listKind,
  mapKind,
  numberKind,
  textKind,
} from '../core/kinds.ts';
import { type Fields, objectSchema, readNamedRecords, type RejectSetting } from '../core/named-records.ts';
import { CONSENTS } from './consent.ts';
import { CALL_LIMITS } from './limits.ts';
import type { McpEndpoint, McpServerConfig } from './server-pool.ts';

const NAME = '^[A-Za-z0-9_-]{1,64}$';
const NAME_KIND = textKind('a name of 1 to 64 letters, digits, _ and -', NAME);
const TEXT = textKind('a non-empty string', '^[^\\u0000]+$');
const ANY_TEXT = textKind('a string', '^[^\\u0000]*$');
const HEADER_VALUE = textKind('a header value without line breaks', '^[\\t\\u0020-\\u007e\\u0080-\\u00ff]*$');
const CONSENT = choiceKind(CONSENTS);

/** The fields of a server, in the form that other clients know, and ours. */
const SERVER_FIELDS = {
  type: {
    description: 'stdio for a command, http for a URL; may be left out',
    kind: choiceKind(['stdio', 'http', 'streamable-http']),
  },
  command: { description: 'program that is the server, started without a shell', kind: TEXT },
  args: { description: 'its arguments; ${NAME} is an environment variable', kind: listKind(ANY_TEXT) },
  env: {
    description: 'environment variables for it, in addition to PATH, HOME and a few others; ${NAME} is one of ours',
    kind: mapKind('an object of strings by name', '^[A-Za-z_][A-Za-z0-9_]{0,255}$', ANY_TEXT),
  },
  cwd: { description: 'folder it runs in; default: the current one', kind: TEXT },
  url: {
    description: 'URL of a server that speaks streamable HTTP; ${NAME} is an environment variable',
    kind: textKind('an http or https URL', '^https?://\\S+$'),
  },
  headers: {
    description: 'HTTP headers, such as Authorization; ${NAME} is an environment variable',
    kind: mapKind('an object of header values by name', "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$", HEADER_VALUE),
  },
  consent: {
    description:
      'rule for its tools: allow, ask before each call, or deny; default: allow those that only read, ask for others',
    kind: CONSENT,
  },
  tools: {
    description: 'rules for single tools: allow, ask or deny, by name',
    kind: mapKind('an object of allow, ask or deny by name of a tool', '^[^\\u0000]{1,128}$', CONSENT),
  },
  timeout: {
    description: `seconds of a call; default ${CALL_LIMITS.timeoutMs / 1000}`,
    kind: numberKind(0.001, 86_400),
  },
  maxResultBytes: {
    description: `bytes of a result, the rest is cut off; default ${CALL_LIMITS.maxResultBytes}`,
    kind: integerKind(1, 8 << 20),
  },
  maxAge: {
    description:
      'seconds that a result of a tool which only reads may be old to be used again for the same arguments; default 0: never',
    kind: numberKind(0, 604_800),
  },
  tenants: { description: 'tenants of ruvllm serve that may use it; default: all', kind: listKind(TEXT) },
} as const satisfies Fields;

/** Settings of an MCP server. */
export type McpServerSettings = {
  readonly [K in keyof typeof SERVER_FIELDS]?: (typeof SERVER_FIELDS)[K]['kind'] extends Kind<infer T> ? T : never;
};

export interface ReadServersOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly reject: RejectSetting;
  /** Resolves a folder of the settings. */
  resolveFolder(folder: string): string;
}

/** Reads the section `mcpServers`. Environment variables are filled in when a server is used. */
export function readMcpServers(section: unknown, options: ReadServersOptions): readonly McpServerConfig[] {
  const { reject } = options;
  return readNamedRecords(section, 'mcpServers', NAME_KIND, SERVER_FIELDS, reject).map(({ name, fields }) => ({
    name,
    endpoint: readEndpoint(fields, `mcpServers.${name}`, options),
    consent: { server: fields.consent ?? null, tools: new Map(Object.entries(fields.tools ?? {})) },
    timeoutMs: (fields.timeout ?? CALL_LIMITS.timeoutMs / 1000) * 1000,
    maxResultBytes: fields.maxResultBytes ?? CALL_LIMITS.maxResultBytes,
    maxAgeMs: (fields.maxAge ?? 0) * 1000,
    tenants: fields.tenants ?? null,
  }));
}

function readEndpoint(fields: McpServerSettings, path: string, options: ReadServersOptions): McpEndpoint {
  const { environment, reject, resolveFolder } = options;
  const { type, command, args = [], env = {}, cwd, url, headers = {} } = fields;
  if ((command === undefined) === (url === undefined)) reject(path, `"${path}" requires either command or url`);
  const wrong = command === undefined ? ['args', 'env', 'cwd'] : ['headers'];
  for (const key of wrong) if (Object.hasOwn(fields, key)) reject(`${path}.${key}`, `"${path}.${key}" requires ${command === undefined ? 'command' : 'url'}`); // prettier-ignore
  if (type !== undefined && (type === 'stdio') !== (command !== undefined)) {
    reject(`${path}.type`, `"${path}.type" is ${type}, which requires ${type === 'stdio' ? 'command' : 'url'}`);
  }
  const fill = (text: string, at: string): string =>
    text.replaceAll(/\$\{(\w+)\}/g, (_, name: string) => {
      const value = environment[name];
      return value ?? reject(at, `"${at}" names the environment variable ${name}, which is not set`);
    });
  const fillAll = (values: Readonly<Record<string, string>>, at: string): Record<string, string> =>
    Object.fromEntries(Object.entries(values).map(([key, value]) => [key, fill(value, `${at}.${key}`)]));
  if (command === undefined) {
    return {
      kind: 'http',
      url: readUrl(fill(url!, `${path}.url`), `${path}.url`, reject),
      headers: fillAll(headers, `${path}.headers`),
    };
  }
  return {
    kind: 'stdio',
    command,
    args: args.map((text) => fill(text, `${path}.args`)),
    env: fillAll(env, `${path}.env`),
    folder: cwd === undefined ? null : resolveFolder(cwd),
  };
}

function readUrl(text: string, at: string, reject: RejectSetting): string {
  try {
    return new URL(text).href;
  } catch {
    return reject(at, `"${at}" must be an http or https URL`);
  }
}

export const MCP_SECTION = 'MCP servers whose tools models may use, by name; see docs/mcp.md.';

/** The JSON schema of the section `mcpServers`. */
export const mcpServersSchema = (): JsonSchema => ({
  description: MCP_SECTION,
  type: 'object',
  propertyNames: { pattern: NAME },
  additionalProperties: objectSchema(SERVER_FIELDS, []),
});
