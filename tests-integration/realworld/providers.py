from Models.people import User
from Models.writing import Article
from Services.accounts import Tokens, current_user
from Services.writing import article_of_path

providers = {User: current_user, Tokens: Tokens, Article: article_of_path}
