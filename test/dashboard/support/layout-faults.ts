import type { Page } from 'playwright-core';

/**
 * Faults of the current layout, one line each, by boxes and not by pixels, so that fonts of another machine make no difference: a page wider
 * than the screen, controls that stick out or that something covers, labels cut off without an ellipsis, marks under a sticky column,
 * lists that scroll sideways, tables with an empty rest.
 */
export function findLayoutFaults(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const faults: string[] = [];
    const nameOf = (element: Element): string =>
      `${element.tagName.toLowerCase()} "${(element.getAttribute('aria-label') ?? element.textContent ?? '').trim().slice(0, 40)}"`;
    if (document.documentElement.scrollWidth > innerWidth) {
      faults.push(`the page is ${document.documentElement.scrollWidth} px wide, the screen ${innerWidth}`);
    }
    const isShown = (element: Element): boolean =>
      element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) &&
      element.closest('.unseen, .skip-link, .icon-select') === null;
    const scrollerOf = (element: Element): Element | null => {
      for (let one = element.parentElement; one !== null; one = one.parentElement) {
        if (/auto|scroll/.test(getComputedStyle(one).overflowX) && one.scrollWidth > one.clientWidth) return one;
      }
      return null;
    };
    const controls = [...document.querySelectorAll('a, button, input, select, textarea, [role=tab]')].filter(isShown);
    for (const control of controls) {
      const { left, right, top, bottom, width } = control.getBoundingClientRect();
      if (width === 0) continue;
      const isScrolled = scrollerOf(control) !== null;
      if (!isScrolled && (left < -1 || right > innerWidth + 1)) faults.push(`${nameOf(control)} sticks out: ${left} to ${right}`);
      const style = getComputedStyle(control);
      const isCut = control.scrollWidth > control.clientWidth + 1 && style.overflowX === 'hidden' && style.textOverflow !== 'ellipsis';
      if (isCut && control.matches('a, button')) faults.push(`${nameOf(control)} is cut off`);
      const [x, y] = [(left + right) / 2, (top + bottom) / 2];
      const box = control.closest('.main, .side')?.getBoundingClientRect();
      const isOnScreen = x > 0 && x < innerWidth && y > (box?.top ?? 0) && y < Math.min(innerHeight, box?.bottom ?? innerHeight);
      const hit = isOnScreen && !isScrolled ? document.elementFromPoint(x, y) : null;
      if (hit !== null && !control.contains(hit) && !hit.contains(control)) faults.push(`${nameOf(hit)} covers ${nameOf(control)}`);
    }
    for (const badge of [...document.querySelectorAll('.table .badge')].filter(isShown)) {
      const { left, right, top, bottom } = badge.getBoundingClientRect();
      const actions = badge.closest('tr')?.querySelector('td:last-child')?.getBoundingClientRect();
      if (actions !== undefined && left < actions.left && right > actions.left + 1) faults.push(`the buttons of its row cover ${nameOf(badge)}`);
      if (bottom - top > 40) faults.push(`${nameOf(badge)} wraps`);
    }
    for (const table of [...document.querySelectorAll('.list-table')].filter(isShown)) {
      const wrap = table.parentElement!;
      if (wrap.scrollWidth > wrap.clientWidth + 1) faults.push(`${nameOf(wrap)} scrolls sideways`);
    }
    for (const grid of [...document.querySelectorAll('.grid-scroll')].filter(isShown)) {
      const rest = grid.getBoundingClientRect().bottom - grid.querySelector('.grid-body')!.getBoundingClientRect().bottom;
      if (rest > 20) faults.push(`${nameOf(grid)} ends with ${rest} empty pixels`);
    }
    return faults;
  });
} // prettier-ignore
