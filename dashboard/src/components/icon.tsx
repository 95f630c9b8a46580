/** Outlines in a 24 × 24 view box. */
const PATHS = {
  chat: 'M4 5h16v11H9l-5 4z',
  live: 'M3 12h4l3-8 4 16 3-8h4',
  audit: 'M7 3h8l4 4v14H7zM15 3v4h4M10 12h6M10 16h6',
  memory:
    'M12 4c4.4 0 8 1.3 8 3s-3.6 3-8 3-8-1.3-8-3 3.6-3 8-3zM4 7v5c0 1.7 3.6 3 8 3s8-1.3 8-3V7M4 12v5c0 1.7 3.6 3 8 3s8-1.3 8-3v-5',
  learning: 'M4 19h16M6 15l4-5 4 3 5-8M15 5h4v4',
  models: 'M12 3l8 4.5v9L12 21l-8-4.5v-9zM12 12l8-4.5M12 12v9M12 12L4 7.5',
  keys: 'M8.5 19a4.5 4.5 0 1 1 0-9 4.5 4.5 0 0 1 0 9zM11.7 11.3L20 3M16 7l3 3M13.5 9.5l2 2',
  sun: 'M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM12 2v2M12 20v2M4.9 4.9l1.4 1.4M17.7 17.7l1.4 1.4M2 12h2M20 12h2M4.9 19.1l1.4-1.4M17.7 6.3l1.4-1.4',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z',
  'theme-auto': 'M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18zM12 3v18M12 8h6.5M12 12h9M12 16h6.5',
  language: 'M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18zM3 12h18M12 3c5 5 5 13 0 18M12 3c-5 5-5 13 0 18',
  'sign-out': 'M14 4H5v16h9M10 12h11M17 8l4 4-4 4',
  plus: 'M12 5v14M5 12h14',
  close: 'M6 6l12 12M18 6L6 18',
  send: 'M12 20V5M6 11l6-6 6 6',
  stop: 'M7 7h10v10H7z',
  refresh: 'M20 11a8 8 0 1 0-2.3 6M20 5v6h-6',
  edit: 'M4 20l1-4L16.5 4.5l3 3L8 19zM14.5 6.5l3 3',
  'thumb-up': 'M7 11v9H4v-9zM7 11l4-8c1.5 0 2.5 1 2.5 2.5V9H19a1.5 1.5 0 0 1 1.5 1.8l-1.3 7.5A2 2 0 0 1 17.2 20H7',
  'thumb-down': 'M17 13V4h3v9zM17 13l-4 8c-1.5 0-2.5-1-2.5-2.5V15H5a1.5 1.5 0 0 1-1.5-1.8l1.3-7.5A2 2 0 0 1 6.8 4H17',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  info: 'M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18zM12 11v6M12 7.5v.5',
  warning: 'M12 4l9 16H3zM12 10v5M12 17.5v.5',
  settings: 'M4 7h9M17 7h3M13 7a2 2 0 1 0 4 0 2 2 0 1 0-4 0zM4 17h3M11 17h9M7 17a2 2 0 1 0 4 0 2 2 0 1 0-4 0z',
  trash: 'M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5',
  search: 'M10.5 4a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zM15.5 15.5L20 20',
  check: 'M5 12.5l4.5 4.5L19 7',
  down: 'M6 9l6 6 6-6',
  right: 'M9 6l6 6-6 6',
  left: 'M15 6l-6 6 6 6',
  download: 'M12 4v11M7 11l5 5 5-5M5 20h14',
  upload: 'M12 16V5M7 9l5-5 5 5M5 20h14',
  list: 'M8 6h12M8 12h12M8 18h12M4 6h.5M4 12h.5M4 18h.5',
  graph:
    'M6 8a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM18 11a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM9 20a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM7.9 6.5L16.1 8.5M6.4 8l2 8M16.6 10.5l-6.2 6',
  clock: 'M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18zM12 7v5l3.5 2',
  shield: 'M12 3l8 3v6c0 4.5-3.3 7.8-8 9-4.7-1.2-8-4.5-8-9V6zM8.5 12l2.5 2.5 4.5-5',
  branch: 'M6 4v16M6 8a2 2 0 1 0 0-4M18 8a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM18 8c0 5-4 6-12 7',
  play: 'M8 5l11 7-11 7z',
  undo: 'M9 6L4 11l5 5M4 11h10a5 5 0 0 1 0 10h-3',
} as const;

export type IconName = keyof typeof PATHS;

/** A decorative icon, hidden from screen readers; an icon without text needs a label on its parent. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      class="icon"
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="1.7"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
