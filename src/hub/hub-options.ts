import { trimEndOf } from '../core/trim.ts';
import { RuvLLMError } from '../core/errors.ts';
import { integerOption, optional, resolveOptions, stringListOption, stringOption } from '../core/options.ts';
import type { HubPlatform } from './platform.ts';

/** Sources and cache of models; all fields except the platform have a default. */
export interface HubOptions {
  platform: HubPlatform;
  /** Folder of the model cache; default: as Hugging Face tools choose it. */
  cacheRoot?: string;
  /** A Hugging Face compatible hub; default: HF_ENDPOINT, then the public one. */
  endpoint?: string;
  /** Further origins on private addresses that downloads may use, such as the storage of a hub; default: RUVLLM_HUB_ORIGINS. */
  origins?: readonly string[];
  /** Sent only to the endpoint's origin; default: HF_TOKEN, then the login's token file. */
  token?: string | null;
  /** Branch, tag or commit on the hub; default main. */
  revision?: string;
  /** Milliseconds until a reply begins; default 15,000. */
  connectTimeoutMs?: number;
  /** Milliseconds without a byte of a reply; default 60,000. */
  idleTimeoutMs?: number;
  /** Attempts in a row without progress; default 5. */
  maxAttempts?: number;
}

export interface ResolvedHubOptions {
  readonly platform: HubPlatform;
  readonly cacheRoot: string;
  readonly endpoint: string;
  readonly origins: readonly string[];
  readonly token: string | null;
  readonly revision: string;
  readonly connectTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly maxAttempts: number;
}

const PUBLIC_ENDPOINT = 'https://huggingface.co';
/** Part of a URL and a file name under refs/: no `..`, and nothing to escape. */
const REVISION = /^(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._/-]{0,127}(?<![./])$/;

function readEndpoint(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '' || url.hash !== '') {
    throw new RuvLLMError('invalid_option', `hub endpoint must be an http(s) URL without credentials or query`);
  }
  return trimEndOf(url.href, '/');
}

function readOrigins(texts: readonly string[]): readonly string[] {
  return texts.map((text) => {
    const url = URL.canParse(text) ? new URL(text) : null;
    if (url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`) return url.origin;
    const shown = JSON.stringify(text.slice(0, 120));
    throw new RuvLLMError(
      'invalid_option',
      `RUVLLM_HUB_ORIGINS: ${shown} is not an origin such as http://10.0.0.5:9000`,
    );
  });
}

/** Validates the options and fills in defaults from the environment. */
export function resolveHubOptions(options: HubOptions): ResolvedHubOptions {
  const { platform, ...values } = options;
  const environment = platform.environment;
  const settings = resolveOptions('hub', values, {
    cacheRoot: stringOption(platform.cacheRoot),
    endpoint: stringOption(environment['HF_ENDPOINT'] || PUBLIC_ENDPOINT),
    origins: optional(stringListOption(64, 2048)),
    token: optional(stringOption(null)),
    revision: stringOption('main'),
    connectTimeoutMs: integerOption(15_000, 1, 600_000),
    idleTimeoutMs: integerOption(60_000, 1, 600_000),
    maxAttempts: integerOption(5, 1, 20),
  });
  if (!REVISION.test(settings.revision)) {
    throw new RuvLLMError('invalid_option', `"${settings.revision.slice(0, 80)}" is not a branch, tag or commit`);
  }
  const token = options.token === undefined ? environment['HF_TOKEN'] || null : settings.token;
  const endpoint = readEndpoint(settings.endpoint);
  const origins = readOrigins(
    settings.origins ?? (environment['RUVLLM_HUB_ORIGINS'] ?? '').split(/[\s,]+/).filter(Boolean),
  );
  return Object.freeze({ ...settings, platform, endpoint, origins, token: checkToken(token) });
}

function checkToken(token: string | null): string | null {
  const trimmed = token?.trim() ?? '';
  // A token with a line break could inject another header.
  if (!/^[\x21-\x7e]*$/.test(trimmed))
    throw new RuvLLMError('invalid_option', 'the hub token contains characters that are not printable ASCII');
  return trimmed === '' ? null : trimmed;
}

/** The token from the options, else from the login's file; `token: null` means none. */
export async function readHubToken(options: ResolvedHubOptions, isFileAllowed: boolean): Promise<string | null> {
  if (options.token !== null || !isFileAllowed) return options.token;
  return checkToken(await options.platform.files.readText(options.platform.tokenPath, 4096));
}
