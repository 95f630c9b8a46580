import { lookup as systemLookup, type LookupAddress, type LookupAllOptions } from 'node:dns';
import { request as httpRequest, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { Readable } from 'node:stream';
import { RuvLLMError } from '../../../core/errors.ts';

type Lookup = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: Error | null, addresses: LookupAddress[]) => void,
) => void;

/** Networks that are not the public Internet: this host, local networks, cloud metadata, tunnels into them, multicast. */
const PRIVATE_V4 = `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
  192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4`;
const PRIVATE_V6 =
  '::/96 64:ff9b:1::/48 100::/64 2001::/32 2001:db8::/32 2002::/16 3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8';

const privateNetworks = new BlockList();
for (const [list, family] of [
  [PRIVATE_V4, 'ipv4'],
  [PRIVATE_V6, 'ipv6'],
] as const) {
  for (const network of list.split(/\s+/)) {
    const [address, prefix] = network.split('/') as [string, string];
    privateNetworks.addSubnet(address, Number(prefix), family);
    // IPv4 addresses inside IPv6 ones: mapped, and behind NAT64.
    if (family === 'ipv6') continue;
    for (const wrapper of ['::ffff:', '64:ff9b::']) {
      privateNetworks.addSubnet(`${wrapper}${address}`, 96 + Number(prefix), 'ipv6');
    }
  }
}

/** Whether an IP address belongs to the public Internet. */
export function isPublicAddress(address: string): boolean {
  const [bare] = address.split('%') as [string]; // without the zone
  const family = isIP(bare);
  return family !== 0 && !privateNetworks.check(bare, family === 4 ? 'ipv4' : 'ipv6');
}

const refuse = (host: string, address: string): RuvLLMError =>
  new RuvLLMError('download_failed', `${host}: refused to connect to ${address}, which is not a public address`, {
    data: { host, address },
  });

/** The host of a URL as an address; null: a name. URLs spell every form of an IPv4 address with four decimal numbers. */
function addressOf(hostname: string): string | null {
  const bare = hostname.replace(/^\[|\]$/g, '');
  return isIP(bare) === 0 ? null : bare;
}

/** Names of this host, which not every resolver knows with a dot at the end. */
const isLocalName = (hostname: string): boolean => /(^|\.)localhost\.?$/i.test(hostname);

/** Whether a host of a URL leads only to private addresses. Unknown names are public: connecting to them fails. */
export function isPrivateHost(hostname: string, lookup: Lookup = systemLookup): Promise<boolean> {
  const address = addressOf(hostname);
  if (address !== null) return Promise.resolve(!isPublicAddress(address));
  if (isLocalName(hostname)) return Promise.resolve(true);
  return new Promise((resolve) => {
    lookup(hostname, { all: true }, (error, addresses) => {
      resolve(error === null && addresses.length > 0 && addresses.every((one) => !isPublicAddress(one.address)));
    });
  });
}

/** A request that connects only to public addresses; GET by default. The checked address is the one that is connected to. */
export function fetchPublic(
  url: string,
  {
    method = 'GET',
    headers,
    body: sentBody = null,
    signal,
  }: Pick<RequestInit, 'method' | 'headers' | 'body' | 'signal'>,
  { lookup = systemLookup, isAllowed = isPublicAddress }: { lookup?: Lookup; isAllowed?: typeof isPublicAddress } = {},
): Promise<Response> {
  const { protocol, hostname, host } = new URL(url);
  const lookupPublic: LookupFunction = (name, options, callback) => {
    if (isLocalName(name) && !isAllowed('127.0.0.1')) return callback(refuse(host, name), [], 0);
    lookup(name, { ...options, all: true }, (error, addresses) => {
      const refused = addresses?.find(({ address }) => !isAllowed(address));
      if (error !== null) callback(error, [], 0);
      else if (refused !== undefined) callback(refuse(host, refused.address), [], 0);
      else if (options.all === true) callback(null, addresses);
      else callback(null, addresses[0]!.address, addresses[0]!.family);
    });
  };
  const address = addressOf(hostname); // is not looked up
  if (address !== null && !isAllowed(address)) return Promise.reject(refuse(host, address));
  return new Promise((resolve, reject) => {
    const options: RequestOptions = {
      method,
      headers: Object.fromEntries(new Headers(headers)),
      lookup: lookupPublic,
      agent: false, // a shared connection may have been opened without the check
      ...(signal == null ? {} : { signal }),
    };
    const request = (protocol === 'https:' ? httpsRequest : httpRequest)(url, options, (incoming) => {
      const replyHeaders = new Headers();
      for (let i = 0; i < incoming.rawHeaders.length; i += 2) {
        replyHeaders.append(incoming.rawHeaders[i]!, incoming.rawHeaders[i + 1]!);
      }
      const status = incoming.statusCode!;
      const hasBody = status !== 204 && status !== 304;
      const body = hasBody ? (Readable.toWeb(incoming) as ReadableStream<Uint8Array>) : null;
      resolve(new Response(body, { status, headers: replyHeaders }));
    });
    request.on('error', reject);
    if (sentBody === null) request.end();
    else if (typeof sentBody === 'string' || sentBody instanceof Uint8Array) request.end(sentBody);
    else if (sentBody instanceof ReadableStream) {
      const stream = Readable.fromWeb(sentBody as Parameters<typeof Readable.fromWeb>[0]);
      stream.on('error', (error) => request.destroy(error));
      stream.pipe(request);
    } else request.destroy(new Error('a body of this kind is not supported'));
  });
}
