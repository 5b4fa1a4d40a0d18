// A member's page leads its browser on to the room.
"use strict";

document.querySelector("a[data-follow]")?.click();
