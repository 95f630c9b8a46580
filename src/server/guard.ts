import { DEFAULT_TENANT } from '../runtime/default-tenant.ts';
import type { Caller } from './caller.ts';
import { refusal } from './errors.ts';
import { KEY_SCOPES, type KeyScope, type KeyStore } from './keys/key-store.ts';

/** Key scopes that allow each route scope. */
const ALLOWING_SCOPES: Readonly<Record<Exclude<RouteScope, 'public'>, readonly KeyScope[]>> = {
  read: ['read-only', 'inference', 'admin'],
  inference: ['inference', 'admin'],
  operate: ['read-only', 'admin'],
  download: ['download', 'admin'],
  admin: ['admin'],
};

/** The route scopes that these key scopes allow. */
export function allowedBy(scopes: readonly KeyScope[]): Readonly<Record<Exclude<RouteScope, 'public'>, boolean>> {
  const allows = (scope: Exclude<RouteScope, 'public'>): boolean =>
    ALLOWING_SCOPES[scope].some((allowing) => scopes.includes(allowing));
  return {
    read: allows('read'),
    inference: allows('inference'),
    operate: allows('operate'),
    download: allows('download'),
    admin: allows('admin'),
  };
}

/** Authenticates requests and checks the scope of their route. */
export interface Guard {
  /** Whether requests need no key. */
  readonly isOpen: boolean;
  /** Throws a 401 or 403. */
  admit(headers: Headers, scope: RouteScope): Promise<Pick<Caller, 'tenant' | 'keyId' | 'scopes'>>;
  /** Throws a 401 if a caller that was admitted would not be any more. */
  checkCaller(caller: Pick<Caller, 'keyId'>): void;
  /** From now on all requests need a key. */
  requireKeys(): void;
}

/** With `isOpen`, requests without a key are accepted until there is a key, or until `requireKeys`. */
export function createGuard({ keys, isOpen: startsOpen }: { keys: KeyStore; isOpen: boolean }): Guard {
  const hasKeys = (): boolean => keys.list().some(({ revokedMs }) => revokedMs === null);
  let isOpen = startsOpen;
  const hadKeys = startsOpen && hasKeys();
  /** The first key, which another process may create, closes the server. */
  function checkOpen(): boolean {
    if (isOpen && !hadKeys && hasKeys()) isOpen = false;
    return isOpen;
  }
  return {
    get isOpen() {
      return checkOpen();
    },
    requireKeys() {
      isOpen = false;
    },
    checkCaller({ keyId }) {
      if (keyId === null ? checkOpen() : keys.isValid(keyId)) return;
      throw denied('invalid_api_key', 'the API key is not valid any more');
    },
    async admit(headers, scope) {
      if (scope === 'public') return { tenant: DEFAULT_TENANT, keyId: null, scopes: [] };
      if (checkOpen()) return { tenant: DEFAULT_TENANT, keyId: null, scopes: KEY_SCOPES };
      const token = readToken(headers);
      if (token === null)
        throw denied('missing_api_key', 'API key required: send the header "Authorization: Bearer KEY"');
      const key = await keys.verify(token);
      if (key === null) throw denied('invalid_api_key', 'the API key is not valid');
      if (!allowedBy(key.scopes)[scope]) {
        throw refusal(
          403,
          'insufficient_scope',
          `the key has the scope ${key.scopes.join(', ')}; this route requires ${ALLOWING_SCOPES[scope].join(' or ')}`,
          { type: 'permission_error', caller: { tenant: key.tenant, keyId: key.id } },
        );
      }
      return { tenant: key.tenant, keyId: key.id, scopes: key.scopes };
    },
  };
}

/** OpenAI's clients send a bearer token, Anthropic's their own header. */
function readToken(headers: Headers): string | null {
  const bearer = /^Bearer +(\S+)\s*$/i.exec(headers.get('authorization') ?? '')?.[1];
  return bearer ?? headers.get('x-api-key');
}

function denied(code: string, message: string): Error {
  return refusal(401, code, message, { type: 'authentication_error' });
}

/**
 * The scope that a route requires. `public`: no key; `operate`: data about all tenants together; `download`: model files, which are worth
 * more than their answers.
 */
export type RouteScope = 'public' | 'read' | 'inference' | 'operate' | 'download' | 'admin';
