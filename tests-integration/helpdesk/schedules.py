from Services.tickets import close_solved
from treefold.jobs import Schedule

schedules = [Schedule("0 4 * * *", close_solved)]
